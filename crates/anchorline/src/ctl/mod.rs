//! Looks into a running node: asks its data plane engine, which answers whether or not a control plane is there; of control planes, its
//! control plane engine.

pub(crate) mod associations;
mod balance;
mod cdr;
mod content;
mod drops;
mod explain;
#[cfg(test)]
mod fixture;
mod interval;
mod matched;
mod names;
mod packet;
mod peers;
mod ports;
mod predefined;
mod progress;
mod release;
mod runtime;
mod sessions;
mod status;
mod trace;
mod values;

use crate::cpe::control::{self, Order};
use crate::{exit, settings};
use clap::{Parser, Subcommand};
use interval::Interval;
use serde::Serialize;
use std::time::SystemTime;

/// What to look at, and how to say it.
#[derive(Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    view: View,
    #[command(flatten)]
    settings: settings::Args,
    /// Print one JSON object instead: all the engine counts, or what else is told and was done.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum View {
    /// Sessions, ports, and whether every packet is accounted for.
    Status,
    /// How each port's packets get to the workers that own their users, and what its card was found to be able to do.
    Ports(ports::Args),
    /// Packets, vectors and cycles by node of the graph.
    Runtime(Interval),
    /// Dropped packets by reason, what each reason means, and which users gave way to others.
    Drops(Interval),
    /// GTP-U peers that tunnels lead to, and whether they answer (TS 29.281 7.2).
    Peers,
    /// Control planes that are associated (N4): whether they answer, and what they have here.
    ///
    /// States: `up`; `mute`, of one that has never answered a heartbeat and is taken to be there all the same; `silent`, of one that has
    /// and does no longer; `leaving`, of one that was asked to release us (`ctl release`); `ending`, of one whose sessions end, as it has
    /// left or begins anew: those that are left are shown; `wanted`, of one in `associate` that has not associated yet. Outstanding are requests to it, or about its sessions, that wait for an answer; held are its sessions that
    /// have something to tell once it answers.
    Associations,
    /// Watch the next packets on their way through the graph: every node, the rule, the end.
    ///
    /// All criteria given must match. While a trace lasts the worker looks at every packet and is a little slower; the
    /// trace ends by itself, and one runs at a time. Packets that were kept for a sleeping user are seen when they come
    /// in, not when they go out.
    Trace(trace::Args),
    /// Say what would happen to a packet of a user, and by which rule; nothing is sent.
    ///
    /// The data plane asks the classifier and the rules it forwards by. Rates and quotas are as they stand now.
    Explain(explain::Args),
    /// How sessions and packets are spread over workers, and why; move sessions so that workers are more even.
    ///
    /// Without options it only tells: by worker its sessions, its room, the share of its time that packets take and how many
    /// packets a second; what the node does by itself about it (`dpe.balance`); why new sessions went where they did; which
    /// sessions moved last, who wanted it, and why those stayed that did.
    ///
    /// Moves are those of `ctl sessions move`: no packet overtakes another, counts go on, and none is lost unless more than 2,048 would
    /// wait amid a move.
    Balance(balance::Args),
    /// At which worker a user's session is; move it to another.
    Sessions(sessions::Args),
    /// Check, explain and load content rules.
    Rules(content::Args),
    /// Show, put and remove predefined rules while the node runs (TS 29.244 5.19).
    Predefined(predefined::Args),
    /// Ask all control planes to release their associations, before the node is taken out of service, or one of them (TS 29.244
    /// 6.2.7.3).
    ///
    /// No session is made for them any more, and none may associate until the node is stopped, or until `--cancel`. Once the time
    /// is over, so are the associations, with all their sessions. With `--peer` that is so for one control plane, until the time is
    /// over or it has released us: then it may associate again, but is not asked to, even if it is one of `associate`, until
    /// `--cancel` or the next start. One that is gone for good is cleared away by `--peer` with `--grace 0`.
    Release(release::Args),
    /// Read files of charging records, and see how writing them goes.
    Cdr(cdr::Args),
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let View::Rules(rules) = &args.view
        && let Some(done) = rules.execute(&args.settings, args.json)
    {
        return exit::say(&done?);
    }
    if let View::Cdr(cdr) = &args.view {
        return exit::say(&cdr.execute(&args.settings, args.json)?);
    }
    let settings = args.settings.load()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    exit::say(&runtime.block_on(args.view.look(&settings, args.json))?)
}

impl View {
    async fn look(&self, settings: &settings::Settings, json: bool) -> anyhow::Result<String> {
        let link = &settings.link();
        match self {
            Self::Status => {
                let statistics = crate::observer::statistics(link).await?;
                let told = status::Told { statistics, charging: cdr::status_value(settings) };
                say(&told, json, |told| status::text(&told.statistics) + &cdr::status_line(settings))
            }
            Self::Ports(args) => {
                let ports = crate::observer::statistics(link).await?.ports;
                say(&ports::json(&ports), json, |_| args.text(&ports))
            }
            Self::Runtime(interval) => say(&interval.statistics(link).await?, json, runtime::text),
            Self::Drops(interval) => say(&interval.statistics(link).await?, json, drops::text),
            Self::Peers => {
                let mut peers = crate::observer::peers(link).await?;
                peers.sort_by_key(|peer| peer.address);
                let now_s = (crate::cpe::time_of_day(SystemTime::now())? / 1_000) as u32;
                say(&serde_json::json!({ "peers": peers }), json, |_| peers::text(&peers, now_s))
            }
            Self::Associations => {
                let all = control::order(&settings.control(), Order::Associations).await?.associations;
                say(&serde_json::json!({ "associations": all }), json, |_| associations::text(&all))
            }
            Self::Trace(args) => say(&args.trace(link).await?, json, trace::text),
            Self::Balance(args) => args.execute(link, json).await,
            Self::Sessions(args) => args.execute(settings, json).await,
            Self::Rules(args) => {
                let charged = crate::charged::Charged::of(settings);
                args.execute_on((settings.content.as_ref(), charged.as_ref()), link, json).await
            }
            Self::Predefined(args) => args.execute(settings, json).await,
            Self::Release(args) => args.execute(&settings.control(), json).await,
            Self::Cdr(_) => Ok(String::new()),
            Self::Explain(args) => args.execute(settings, json).await,
        }
    }
}

fn say<T: Serialize>(answer: &T, json: bool, text: impl Fn(&T) -> String) -> anyhow::Result<String> {
    Ok(if json { serde_json::to_string(answer)? + "\n" } else { text(answer) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dplink::{Balancing, Explanation, Move, MoveCause, Placed, Step, Trace, TraceEnd, TracedPacket};
    use rules::Seid;

    /// It has more digits than readers of JSON keep of a number.
    const SESSION: Seid = Seid(0xeeb3_2352_0000_0001);

    #[test]
    fn programs_are_told_of_sessions_as_people_are() {
        let told = |text: String| {
            assert!(text.contains(r#""session":"0xeeb3235200000001""#), "{text}");
        };
        let explanation = Explanation { session: Some(SESSION), ..explain::tests::explanation() };
        told(say(&explanation, true, |_| String::new()).unwrap());
        let packet = TracedPacket {
            after_us: 0,
            port: "n3".to_owned(),
            arrived: packet::tests::tunnelled(),
            nodes: vec![],
            end: TraceEnd::Consumed,
            session: Some(SESSION),
            pdr: None,
            policy: None,
        };
        let trace = Trace { packets: vec![packet], looked_at: 1, lasted_ms: 1 };
        told(say(&trace, true, trace::text).unwrap());
        let placed = Placed { session: SESSION, worker: 0, came_from: None };
        told(say(&placed, true, sessions::text).unwrap());
        let step = Step { session: SESSION, from: 0, to: 1 };
        told(say(&step, true, |_| String::new()).unwrap());
        let last =
            Move { session: SESSION, from: None, to: 1, cause: MoveCause::Asked, age_ms: 1, stayed: None };
        told(say(&Balancing { last: vec![last], ..Balancing::default() }, true, |_| String::new()).unwrap());
        assert_eq!(values::seid(&SESSION.to_string()), Ok(SESSION));
    }
}
