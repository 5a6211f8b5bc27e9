//! Writes a flow description as TS 29.212 5.4.2 has it; what is read back is the same.

use super::{Addresses, FlowDescription, FlowEnd, PortRange};
use std::fmt;

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.inverted {
            f.write_str("!")?;
        }
        match self.prefix.prefix_len() == self.prefix.max_prefix_len() {
            true => write!(f, "{}", self.prefix.addr()),
            false => write!(f, "{}", self.prefix),
        }
    }
}

impl fmt::Display for FlowDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("permit out ")?;
        match self.protocol {
            Some(protocol) => write!(f, "{protocol}")?,
            None => f.write_str("ip")?,
        }
        f.write_str(" from ")?;
        write_end(&self.remote, "any", f)?;
        f.write_str(" to ")?;
        write_end(&self.user, "assigned", f)
    }
}

fn write_end(end: &FlowEnd, any: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match end.addresses {
        Some(addresses) => write!(f, "{addresses}")?,
        None => f.write_str(any)?,
    }
    for (range, separator) in end.ports.iter().zip(std::iter::once(' ').chain(std::iter::repeat(','))) {
        write!(f, "{separator}{range}")?;
    }
    Ok(())
}
