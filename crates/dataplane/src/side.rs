//! Where packets come from and go to: a side, and there, which of several networks.

use rules::{Direction, Instance, Interface};

/// A side and a network instance there. The radio side is one: whatever control planes call it, tunnels say who is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Side {
    interface: Interface,
    instance: Instance,
}

impl Side {
    /// That of an instance.
    #[inline]
    pub(crate) const fn new(interface: Interface, instance: Instance) -> Self {
        match interface {
            Interface::Access => Self::of(interface),
            Interface::Core | Interface::SgiLan => Self { interface, instance },
        }
    }

    /// That of the default instance.
    #[inline]
    pub(crate) const fn of(interface: Interface) -> Self {
        Self { interface, instance: Instance::DEFAULT }
    }

    /// As one number.
    #[inline(always)]
    pub(crate) const fn bits(self) -> u32 {
        self.interface as u32 | (self.instance.digest() as u32) << 8
    }

    /// Which of our sides.
    #[inline]
    pub(crate) const fn interface(self) -> Interface {
        self.interface
    }

    /// The network there.
    #[inline]
    pub(crate) const fn instance(self) -> Instance {
        self.instance
    }

    /// The way of packets that come from there.
    #[inline]
    pub(crate) const fn direction(self) -> Direction {
        self.interface.direction()
    }
}
