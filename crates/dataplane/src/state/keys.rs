//! The keys by which packets find the sessions of a worker.

use super::framed::found_by;
use super::installation::Refusal;
use super::ports::Ports;
use super::session::{Key, SessionIndex};
use super::sessions::Sessions;
use crate::frame::PortIndex;
use rules::Instance;

/// How many keys there are of each kind.
#[derive(Default)]
struct Kinds {
    tunnels: usize,
    users: usize,
    routes: usize,
}

impl Kinds {
    fn of(keys: &[Key]) -> Self {
        let mut kinds = Self::default();
        for key in keys {
            match found_by(*key) {
                Key::Tunnel(_) => kinds.tunnels += 1,
                Key::User(..) => kinds.users += 1,
                Key::Route(..) => kinds.routes += 1,
            }
        }
        kinds
    }
}

impl Sessions {
    /// The session behind a tunnel of ours.
    #[inline]
    pub(crate) fn by_tunnel(&self, key: u64) -> Option<SessionIndex> {
        self.place_of(Key::Tunnel(key)).map(SessionIndex)
    }

    /// The session of a user's address.
    #[inline]
    pub(crate) fn by_user(&self, (address, instance): (u64, Instance)) -> Option<SessionIndex> {
        self.place_of(Key::User(address, instance)).map(SessionIndex)
    }

    /// The network of the user behind a tunnel of ours; the default one where nobody is behind it.
    pub(crate) fn instance_behind(&self, tunnel: u64) -> Instance {
        let place = self.place_of(Key::Tunnel(tunnel)).unwrap_or(u32::MAX);
        self.instances.get(place as usize).copied().unwrap_or_default()
    }

    /// Whether packets in some tunnel of a port go the other way than others of it.
    #[inline]
    pub(crate) fn turns(&self, port: PortIndex) -> bool {
        self.turned.get(usize::from(port)).is_some_and(|tunnels| *tunnels > 0)
    }

    /// Whether there are such tunnels on any port.
    #[inline]
    pub(crate) fn has_turned(&self) -> bool {
        self.turned.iter().any(|tunnels| *tunnels > 0)
    }

    /// Whether a session is [between](Session::is_between) tunnels of this node.
    #[inline]
    pub(crate) fn is_between(&self, index: SessionIndex) -> bool {
        self.get(index).is_some_and(|session| session.is_between)
    }

    /// Whether a session has this key.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.place_of(key).is_some()
    }

    #[inline]
    pub(super) fn place_of(&self, key: Key) -> Option<u32> {
        let found_by = found_by(key);
        let is_there = |place| self.is_of(place, found_by);
        match found_by {
            Key::Tunnel(key) => self.by_tunnel.get(key, is_there),
            Key::User(address, instance) => self.by_user.get((address, instance), is_there),
            Key::Route(bits, length, instance) => self.framed.get((bits, length, instance)),
        }
    }

    /// Whether a key leads to a place, whose session knows; of one that is still to come nobody does, but then packets wait
    /// and are led again once it is there.
    #[inline]
    fn is_of(&self, place: u32, key: Key) -> bool {
        self.get(SessionIndex(place)).is_none_or(|session| session.is_found_by(key))
    }

    /// The tunnels of a port of which a key says that they are turned.
    fn turned_at(&mut self, key: Key) -> Option<&mut u32> {
        let (port, _) = Ports::tunnel(key.turned_tunnel()?);
        self.turned.get_mut(usize::from(port))
    }

    /// Asks for the session that a key seems to lead to.
    #[inline]
    pub(crate) fn prefetch_behind(&self, key: Key) {
        let likely = match key {
            Key::Tunnel(key) => self.by_tunnel.get(key, |_| true),
            Key::User(address, instance) => self.by_user.get((address, instance), |_| true),
            Key::Route(..) => None,
        };
        likely.into_iter().for_each(|place| self.prefetch(SessionIndex(place)));
    }

    /// Asks for what leads to the session of a tunnel or a user's address.
    #[inline]
    pub(crate) fn prefetch_key(&self, key: Key) {
        match key {
            Key::Tunnel(key) => self.by_tunnel.prefetch(key),
            Key::User(address, instance) => self.by_user.prefetch((address, instance)),
            Key::Route(..) => {}
        }
    }

    pub(super) fn admit_keys(&self, keys: &[Key], own: Option<u32>) -> Result<(), Refusal> {
        let is_anothers = |key: &&Key| self.place_of(**key).is_some_and(|place| Some(place) != own);
        if let Some(taken) = keys.iter().find(is_anothers) {
            return Err(Refusal::taken(*taken));
        }
        // A session that changes leaves its old keys first: on a full node, too.
        let old = own.and_then(|place| self.slots.get(place as usize)?.as_ref());
        let (new, old) = (Kinds::of(keys), old.map_or(Kinds::default(), |old| Kinds::of(&old.keys)));
        if new.routes > self.framed.room() + old.routes {
            return Err(Refusal::FramedRoutes);
        }
        let (tunnels, users) = (self.by_tunnel.room() + old.tunnels, self.by_user.room() + old.users);
        match new.tunnels > tunnels || new.users > users {
            true => Err(Refusal::Keys),
            false => Ok(()),
        }
    }

    /// Keys lead to a place, whose user's addresses are of a network.
    pub(super) fn remember(&mut self, (keys, of): (&[Key], Instance), place: u32) {
        if let Some(instance) = self.instances.get_mut(place as usize) {
            *instance = of;
        }
        for key in keys {
            if let Some(tunnels) = self.turned_at(*key) {
                *tunnels += 1;
            }
            let inserted = match found_by(*key) {
                Key::Tunnel(key) => self.by_tunnel.insert(key, place),
                Key::User(address, instance) => self.by_user.insert((address, instance), place),
                Key::Route(bits, length, instance) => self.framed.insert((bits, length, instance), place),
            };
            debug_assert!(inserted.is_ok(), "admit_keys made sure of room");
        }
    }

    /// Keys lead nowhere any more.
    pub(super) fn forget_keys(&mut self, keys: &[Key], place: u32) {
        for key in keys {
            if let Some(tunnels) = self.turned_at(*key) {
                *tunnels -= 1;
            }
            match found_by(*key) {
                Key::Tunnel(key) => self.by_tunnel.remove(key, place),
                Key::User(address, instance) => self.by_user.remove((address, instance), place),
                Key::Route(bits, length, instance) => self.framed.remove((bits, length, instance)),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::probing::{gather, scatter};
    use super::super::sessions::Room;
    use super::*;
    use crate::config::Echo;
    use crate::fixture::{config, rules};
    use crate::install::installation;
    use dplink::Desired;
    use rules::Seid;

    /// Has the same tag in an index.
    fn twin(bits: u64) -> u64 {
        gather(scatter(bits) ^ 1)
    }

    #[test]
    fn who_has_the_tag_of_a_session_and_not_its_name_does_not_find_it() {
        let (few, echo) = (8, Echo::OFF);
        let room = Room {
            sessions: few,
            pdrs: few,
            peers: few,
            aparts: few,
            framed_routes: few,
            catch_up_ns: 0,
            echo,
            has_instances: false,
            section: None,
        };
        let mut sessions = Sessions::new(room).unwrap();
        let mut new = installation((&config().ports, &[]), Desired::new(Seid(1), 1, rules(1)), 0).unwrap();
        let keys = new.keys().to_vec();
        let admitted = sessions.admit(&mut new).ok().unwrap();
        let index = sessions.install((admitted, Box::new(new)), 0, |_| None).index;
        let twins = keys.iter().map(|key| match *key {
            Key::Tunnel(key) => Key::Tunnel(twin(key)),
            Key::User(address, instance) => Key::User(twin(address), instance),
            Key::Route(..) => panic!("there are none"),
        });
        for (key, twin) in keys.iter().zip(twins) {
            assert_eq!((sessions.place_of(*key), sessions.place_of(twin)), (Some(index.0), None), "{key:?}");
        }
        assert_eq!(keys.len(), 2);
        assert_eq!((sessions.by_seid(Seid(1)), sessions.by_seid(Seid(twin(1)))), (Some(index), None));
    }
}
