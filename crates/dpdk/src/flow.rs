//! Flow rules of a port, and what else makes its card lead users' packets to queues: keys, tables, profiles.

use crate::error::Error;
use crate::log;
use crate::port::Port;
use crate::sys::{self, anchorline_flow_item as Item, anchorline_flow_rule as Rule};
use std::ffi::{CStr, c_char};
use std::net::IpAddr;
use std::ptr::{self, NonNull};
use steer::{Action, Rss, RssType};

/// Room for a driver's words, in bytes.
const WORDS: usize = 256;

/// A rule in force, as its driver knows it.
#[derive(Debug)]
pub(crate) struct Flow(NonNull<sys::rte_flow>);

// SAFETY: a handle, of which nothing is read here; drivers take it from any thread, one call at a time, which the
// control lock sees to.
unsafe impl Send for Flow {}

/// The name of a rule that a port has in force; another port's, or one that is gone, names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleId(pub(crate) u64);

/// A status and the driver's words.
pub(crate) struct Refusal {
    status: i32,
    words: String,
}

impl Refusal {
    /// For people: the driver's words, else those of its log, else the number's meaning.
    fn reason(&self, log: &str) -> String {
        match self.words.is_empty() {
            true => log::reason(log, self.status),
            false => self.words.clone(),
        }
    }

    /// As an error about a rule.
    pub(crate) fn error(&self, device: &str, rule: &steer::Rule, log: &str) -> Error {
        Error::FlowRule { device: device.to_owned(), rule: rule.to_string(), reason: self.reason(log) }
    }

    /// As an error about all of a port's rules.
    pub(crate) fn of_all(&self, device: &str, log: &str) -> Error {
        let (device, action) = (device.to_owned(), "freed of its flow rules");
        Error::Device { device, action, reason: self.reason(log) }
    }
}

/// A rule as the shim reads it; what it points to is kept beside it.
struct Flat {
    items: Vec<Item>,
    rss: Rss,
    rule: Rule,
}

impl Flat {
    fn new(rule: &steer::Rule) -> Self {
        let (action, target, rss) = match &rule.action {
            Action::Rss(rss) => (sys::ANCHORLINE_ACTION_RSS, 0, rss.clone()),
            Action::Queue(queue) => (sys::ANCHORLINE_ACTION_QUEUE, u32::from(*queue), Rss::default()),
            Action::Jump(group) => (sys::ANCHORLINE_ACTION_JUMP, *group, Rss::default()),
        };
        let items: Vec<Item> = rule.pattern.iter().map(item).collect();
        let rule = Rule {
            group: rule.group,
            priority: rule.priority,
            items: ptr::null(),
            item_count: items.len() as u32,
            action,
            target,
            level: rss.level,
            types: rss.types.iter().fold(0, |bits, kind| bits | types(*kind)),
            key: ptr::null(),
            key_length: rss.key.len() as u32,
            queue_count: rss.queues.len() as u32,
            queues: ptr::null(),
        };
        Self { items, rss, rule }
    }

    /// Calls the driver; `created` is where it puts a rule it has put in force, or null.
    ///
    /// # Safety
    /// The EAL runs and the control lock is held; `created` is null or may be written.
    unsafe fn call(&self, port: u16, created: *mut *mut sys::rte_flow) -> Result<(), Refusal> {
        let rule = Rule {
            items: self.items.as_ptr(),
            key: self.rss.key.as_ptr(),
            queues: self.rss.queues.as_ptr(),
            ..self.rule
        };
        told(|words| {
            // SAFETY: DPDK checks the port's number; the rule and what it points to live through the call and are only
            // read; `words` has the room it says.
            unsafe { sys::anchorline_flow(port, &raw const rule, created, words, WORDS) }
        })
    }
}

/// A call whose error is told in words.
fn told(call: impl FnOnce(*mut c_char) -> i32) -> Result<(), Refusal> {
    let mut words = [0 as c_char; WORDS];
    let status = call(words.as_mut_ptr());
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the shim ends the text within the room; without a text the array is all zero.
    let text = unsafe { CStr::from_ptr(words.as_ptr()) };
    Err(Refusal { status, words: text.to_string_lossy().into_owned() })
}

/// Asks whether the driver would take a rule.
///
/// # Safety
/// The EAL runs and the control lock is held.
pub(crate) unsafe fn validate(port: u16, rule: &steer::Rule) -> Result<(), Refusal> {
    // SAFETY: as the caller promises; null asks only.
    unsafe { Flat::new(rule).call(port, ptr::null_mut()) }
}

/// Puts a rule in force.
///
/// # Safety
/// The EAL runs and the control lock is held.
pub(crate) unsafe fn create(port: u16, rule: &steer::Rule) -> Result<Flow, Refusal> {
    let mut created = ptr::null_mut();
    // SAFETY: as the caller promises; `created` is ours.
    unsafe { Flat::new(rule).call(port, &raw mut created) }?;
    let none = || Refusal { status: -libc::EINVAL, words: String::new() };
    NonNull::new(created).map(Flow).ok_or_else(none)
}

/// Takes a rule out of force, or with `None` all of a port's.
///
/// # Safety
/// The EAL runs and the control lock is held; the rule is the port's and in force.
pub(crate) unsafe fn destroy(port: u16, flow: Option<Flow>) -> Result<(), Refusal> {
    let flow = flow.map_or(ptr::null_mut(), |flow| flow.0.as_ptr());
    told(|words| {
        // SAFETY: as the caller promises; the handle is given up with this call.
        unsafe { sys::anchorline_flow_destroy(port, flow, words, WORDS) }
    })
}

/// `RTE_ETH_RSS_*` bits of a type.
const fn types(kind: RssType) -> u64 {
    match kind {
        RssType::Ipv4 => sys::ANCHORLINE_RSS_IPV4,
        RssType::Ipv6 => sys::ANCHORLINE_RSS_IPV6,
        RssType::SourceOnly => sys::ANCHORLINE_RSS_SOURCE_ONLY,
        RssType::DestinationOnly => sys::ANCHORLINE_RSS_DESTINATION_ONLY,
        RssType::Prefix64 => sys::ANCHORLINE_RSS_PREFIX64,
        RssType::Gtpu => sys::ANCHORLINE_RSS_GTPU,
    }
}

fn item(item: &steer::Item) -> Item {
    // A value, and which of its bits count.
    let masked = |value: u8, counts: u8| u32::from(value) | u32::from(counts) << 8;
    let (kind, value) = match *item {
        steer::Item::Eth => (sys::ANCHORLINE_ITEM_ETH, 0),
        steer::Item::VlanPriority(pcp) => (sys::ANCHORLINE_ITEM_VLAN_PRIORITY, pcp.into()),
        steer::Item::Ipv4 => (sys::ANCHORLINE_ITEM_IPV4, 0),
        steer::Item::Ipv6 => (sys::ANCHORLINE_ITEM_IPV6, 0),
        steer::Item::Ipv4Tos(tos) => (sys::ANCHORLINE_ITEM_IPV4_TOS, masked(tos, 0xff)),
        steer::Item::Ipv6Class(class) => (sys::ANCHORLINE_ITEM_IPV6_CLASS, masked(class, 0xff)),
        steer::Item::Ipv4Dscp(dscp) => (sys::ANCHORLINE_ITEM_IPV4_TOS, masked(dscp << 2, 0xfc)),
        steer::Item::Ipv6Dscp(dscp) => (sys::ANCHORLINE_ITEM_IPV6_CLASS, masked(dscp << 2, 0xfc)),
        steer::Item::To(IpAddr::V4(_)) => (sys::ANCHORLINE_ITEM_IPV4_TO, 0),
        steer::Item::To(IpAddr::V6(_)) => (sys::ANCHORLINE_ITEM_IPV6_TO, 0),
        steer::Item::ToPrefix(_) => (sys::ANCHORLINE_ITEM_IPV6_TO_PREFIX, 0),
        steer::Item::Udp => (sys::ANCHORLINE_ITEM_UDP, 0),
        steer::Item::UdpTo(port) => (sys::ANCHORLINE_ITEM_UDP_TO, port.into()),
        steer::Item::Tcp => (sys::ANCHORLINE_ITEM_TCP, 0),
        steer::Item::Sctp => (sys::ANCHORLINE_ITEM_SCTP, 0),
        steer::Item::Gtpu => (sys::ANCHORLINE_ITEM_GTPU, 0),
        steer::Item::GtpuTeid(teid) => (sys::ANCHORLINE_ITEM_GTPU_TEID, teid),
        steer::Item::Psc => (sys::ANCHORLINE_ITEM_PSC, 0),
        steer::Item::PscType(pdu_type) => (sys::ANCHORLINE_ITEM_PSC_TYPE, pdu_type.into()),
        steer::Item::PscQfi(qfi) => (sys::ANCHORLINE_ITEM_PSC_QFI, qfi.into()),
    };
    Item { kind, value, address: address(item) }
}

fn address(item: &steer::Item) -> [u8; 16] {
    let mut octets = [0; 16];
    match item {
        steer::Item::To(IpAddr::V4(address)) => {
            octets.iter_mut().zip(address.octets()).for_each(|(to, from)| *to = from);
        }
        steer::Item::To(IpAddr::V6(address)) => octets = address.octets(),
        steer::Item::ToPrefix(prefix) => octets = (u128::from(*prefix) << 64).to_be_bytes(),
        _ => {}
    }
    octets
}

impl Port {
    /// Whether the driver would take a flow rule (`rte_flow_validate`); nothing changes.
    ///
    /// # Errors
    /// [`Error::FlowRule`] with the driver's words.
    pub fn validate_rule(&self, rule: &steer::Rule) -> Result<(), Error> {
        let (result, log) = self.with_lock(|port| {
            // SAFETY: the port is open, so the EAL runs; the lock is held.
            unsafe { validate(port, rule) }
        });
        result.map_err(|refusal| refusal.error(self.device(), rule, &log))
    }

    /// Puts a flow rule in force (`rte_flow_create`), until it is destroyed or the port is closed.
    ///
    /// # Errors
    /// [`Error::FlowRule`] with the driver's words.
    pub fn create_rule(&mut self, rule: &steer::Rule) -> Result<RuleId, Error> {
        let (result, log) = self.with_lock(|port| {
            // SAFETY: the port is open, so the EAL runs; the lock is held.
            unsafe { create(port, rule) }
        });
        let flow = result.map_err(|refusal| refusal.error(self.device(), rule, &log))?;
        Ok(self.keep_rule(flow))
    }

    /// Takes a flow rule out of force (`rte_flow_destroy`).
    ///
    /// # Errors
    /// [`Error::Device`] where there is no such rule any more, or with the driver's words; the rule is then forgotten.
    pub fn destroy_rule(&mut self, rule: RuleId) -> Result<(), Error> {
        let Some(flow) = self.forget_rule(rule) else {
            let (device, action) = (self.device().to_owned(), "freed of a flow rule");
            return Err(Error::Device { device, action, reason: "there is no such rule".to_owned() });
        };
        let (result, log) = self.with_lock(|port| {
            // SAFETY: the port is open, so the EAL runs; the lock is held; the rule was this port's and is forgotten.
            unsafe { destroy(port, Some(flow)) }
        });
        result.map_err(|refusal| refusal.of_all(self.device(), &log))
    }

    /// Takes all flow rules out of force (`rte_flow_flush`).
    ///
    /// # Errors
    /// [`Error::Device`] with the driver's words; the rules are forgotten all the same.
    pub fn flush_rules(&mut self) -> Result<(), Error> {
        self.forget_rules();
        let (result, log) = self.with_lock(|port| {
            // SAFETY: the port is open, so the EAL runs; the lock is held; no rule of the port is remembered.
            unsafe { destroy(port, None) }
        });
        result.map_err(|refusal| refusal.of_all(self.device(), &log))
    }
}

/// Rules come and go while packets do; the words are those of [`Error`].
impl steer::ExactCard for Port {
    type Handle = RuleId;

    fn validate(&self, rule: &steer::Rule) -> Result<(), String> {
        self.validate_rule(rule).map_err(|error| error.to_string())
    }

    fn create(&mut self, rule: &steer::Rule) -> Result<RuleId, String> {
        self.create_rule(rule).map_err(|error| error.to_string())
    }

    fn destroy(&mut self, rule: RuleId) -> Result<(), String> {
        self.destroy_rule(rule).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steer::Item as Layer;

    #[test]
    fn a_prefix_is_the_first_half_of_an_address() {
        let flat = item(&Layer::ToPrefix(0x2001_0db8_0060_0000));
        assert_eq!(flat.kind, sys::ANCHORLINE_ITEM_IPV6_TO_PREFIX);
        assert_eq!(flat.address, [0x20, 1, 0xd, 0xb8, 0, 0x60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_rule_is_flat_for_the_shim() {
        let rss = Rss {
            types: vec![RssType::Ipv4, RssType::SourceOnly],
            level: 2,
            key: vec![1; 40],
            queues: vec![0, 1],
        };
        let pattern = vec![Layer::Eth, Layer::Ipv4Dscp(46), Layer::To("10.0.0.7".parse().unwrap())];
        let flat = Flat::new(&steer::Rule { group: 1, priority: 2, pattern, action: Action::Rss(rss) });
        assert_eq!((flat.rule.group, flat.rule.priority, flat.rule.item_count), (1, 2, 3));
        assert_eq!((flat.rule.key_length, flat.rule.queue_count, flat.rule.level), (40, 2, 2));
        assert_eq!(flat.rule.types, sys::ANCHORLINE_RSS_IPV4 | sys::ANCHORLINE_RSS_SOURCE_ONLY);
        assert_eq!(flat.items.get(1).map(|item| item.value), Some(0xfcb8));
        assert_eq!(
            flat.items.get(2).map(|item| item.address),
            Some(address(&Layer::To([10, 0, 0, 7].into())))
        );
    }
}
