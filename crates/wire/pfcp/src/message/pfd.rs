//! PFD management (TS 29.244 7.4.3): what applications look like, told to a user plane.

use crate::fields::group;
use crate::value::{Cause, NodeId, PfdContents};

group! {
    /// PFD context (7.4.3.1): one packet flow description.
    PfdContext {
        /// What it says.
        contents: some PfdContents = PFD_CONTENTS,
    }
}

group! {
    /// Application ID's PFDs (7.4.3.1): all of an application.
    ApplicationPfds {
        /// The application's name.
        application_id: one Vec<u8> = APPLICATION_ID,
        /// Its descriptions; without any, it has none from now on.
        contexts: all PfdContext = PFD_CONTEXT,
    }
}

group! {
    /// PFD Management Request (7.4.3.1).
    #[derive(Default)]
    PfdManagementRequest {
        /// By application; without any, all descriptions go.
        applications: all ApplicationPfds = APPLICATION_IDS_PFDS,
        /// The sender, where it says so.
        node_id: opt NodeId = NODE_ID,
    }
}

group! {
    /// PFD Management Response (7.4.3.2).
    PfdManagementResponse {
        /// How it ended.
        cause: one Cause = CAUSE,
        /// The IE to blame.
        offending_ie: opt u16 = OFFENDING_IE,
        /// The sender.
        node_id: opt NodeId = NODE_ID,
    }
}
