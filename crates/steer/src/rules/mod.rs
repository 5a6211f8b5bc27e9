//! The rules of each family.

mod any;
mod i40e;
mod intel;
mod mlx5;

pub use i40e::PROFILE as I40E_PROFILE;

use crate::request::{CLASSES_MAX, Refused, Request, Side, Steered};
use crate::rule::{Action, Item, Rss, RssType, Rule};
use crate::{Family, Step, Target};

/// What is done to a port, in order, so that both directions of a user meet in one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    port: u16,
    workers: u16,
    /// The steps.
    pub steps: Vec<Step>,
}

impl Script {
    /// Classes that some rule leads to their queues, by their place in the request.
    pub fn classes(&self) -> impl Iterator<Item = usize> {
        let leads = |class: &usize| self.steps.iter().any(|step| step.class(self.workers) == Some(*class));
        (0..CLASSES_MAX).filter(leads)
    }

    /// All of it as testpmd reads it, one command a line.
    pub fn testpmd(&self) -> String {
        let lines = self.steps.iter().flat_map(|step| step.testpmd(self.port));
        lines.map(|line| line + "\n").collect()
    }
}

/// Makes the rules for a port on one side. The same request for both sides gives rules that meet: one key, one order of
/// queues, and the user's address alone hashed.
///
/// # Errors
/// What about the request cannot be met.
pub fn script(request: &Request, side: Side) -> Result<Script, Refused> {
    request.check()?;
    let steps = match request.family {
        Family::I40e => i40e::steps(request, side),
        Family::Ice | Family::Iavf => intel::steps(request, side),
        Family::Mlx5 => mlx5::steps(request, side),
        _ => any::steps(request, side),
    };
    Ok(Script { port: request.port, workers: request.workers, steps })
}

/// The rules by which a card leads the packets of a target to a queue (flow director), beside those of [`script`] without classes.
/// None where the family cannot tell such packets apart from others, or nobody knows whether its rules have an order.
pub fn exact(family: Family, target: Target, queue: u16) -> Vec<Rule> {
    match family {
        Family::I40e => i40e::exact(target, queue),
        Family::Ice | Family::Iavf => intel::exact(target, queue),
        Family::Mlx5 => mlx5::exact(target, queue),
        _ => Vec::new(),
    }
}

/// Those of a session that is steered one by one.
fn steered(request: &Request, side: Side) -> Vec<Step> {
    let target = |session: &Steered| match side {
        Side::Access => Target::Tunnel(session.teid),
        Side::Core => Target::Address(session.ue),
    };
    let rules = |session| exact(request.family, target(session), session.queue);
    request.steered.iter().flat_map(rules).map(Step::Create).collect()
}

/// The two IP versions, as item and as what is hashed.
const VERSIONS: [(Item, RssType); 2] = [(Item::Ipv4, RssType::Ipv4), (Item::Ipv6, RssType::Ipv6)];

/// Hash by the port's key over the port's table.
fn hash(types: Vec<RssType>) -> Action {
    Action::Rss(Rss { types, ..Rss::default() })
}

/// To a group of queues; what is hashed, another rule says.
fn group(queues: Vec<u16>) -> Action {
    Action::Rss(Rss { queues, ..Rss::default() })
}

/// What nobody can have here.
fn unmet(request: &Request, what: &str, of: impl Fn(&crate::Class) -> bool) -> Option<Step> {
    let asked = request.classes.iter().any(of);
    asked.then(|| Step::Unmet(format!("not available with {}: {what}", request.family)))
}
