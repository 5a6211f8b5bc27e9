//! By which PDR a packet of a flow that waits goes where the PDR for what says no name stops it: as no name is said before a connection is
//! there, what comes without payload takes the first PDR for an application, whichever, that lets it pass. What has a payload ends as that PDR
//! says; but where it says an answer, and any PDR would let the packet pass, it only ends.

use super::inspection::segment;
use crate::Reference;
use crate::detection::{Application, Arrival, pdrs_of};
use crate::enforcement::Bearing;
use crate::reason::DropReason;
use rules::Pdr;

impl Reference {
    pub(super) fn way_of_unknown(
        &self,
        place: usize,
        arrival: &Arrival,
        unknown: Pdr,
    ) -> Result<Pdr, DropReason> {
        let Some(session) = self.sessions.get(place) else { return Ok(unknown) };
        let direction = arrival.source.direction();
        let bearing = session.bearing(&unknown, direction);
        if [Bearing::Passes, Bearing::Keeps].contains(&bearing) {
            return Ok(unknown);
        }
        let all = pdrs_of(&session.rules, arrival, Application::Any);
        let mut before = all.into_iter().take_while(|pdr| pdr.pdi.application.is_some());
        let Some(other) = before.find(|pdr| session.bearing(pdr, direction) == Bearing::Passes) else {
            return Ok(unknown);
        };
        let whole = Some(&arrival.packet).filter(|packet| packet.part.is_none());
        let is_bare = whole.and_then(segment).is_some_and(|segment| segment.payload.is_empty());
        match bearing {
            _ if is_bare => Ok(other.clone()),
            Bearing::Answers => Err(DropReason::Redirected),
            _ => Ok(unknown),
        }
    }
}
