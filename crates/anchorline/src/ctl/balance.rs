//! How sessions are spread over workers, and how they get to be spread more evenly.

use dplink::{BalanceMode, Balancing, Destination, Measure, Move, MoveCause, Step, Whose, WorkerLoad};
use rules::Seid;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Between looks at what is still on its way.
const LOOK: Duration = Duration::from_millis(50);
/// Moves take some turns of the workers each; where sessions are not at rest, a second.
const PATIENCE: Duration = Duration::from_secs(10);
/// Moves shown to people.
const SHOWN: usize = 10;

/// What to do about it; nothing, unless told.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("order").args(["even", "session"])))]
pub(super) struct Args {
    /// Move sessions from the workers that have most to those that have least, 64 at most, and wait until they have moved.
    #[arg(long)]
    even: bool,
    /// What is to be even. What one session costs is not known: by load each is reckoned to cost as much as others of its
    /// worker, so look at what came of it some seconds later, and order it again if need be.
    #[arg(long, value_enum, default_value_t = By::Load, requires = "even")]
    by: By,
    /// Move one session, by its SEID as `ctl trace`, `ctl explain` and this command tell it.
    #[arg(long = "move", value_name = "SEID", value_parser = super::values::seid, requires = "to")]
    session: Option<Seid>,
    /// The worker it is to go to, by its number from 0.
    #[arg(long, value_name = "WORKER", requires = "session")]
    to: Option<u8>,
    /// Only say what would move, or whether the session could.
    #[arg(long, requires = "order")]
    dry_run: bool,
}

/// What is to be even.
#[derive(Clone, Copy, clap::ValueEnum)]
enum By {
    /// The share of their time that packets take.
    Load,
    /// The number of sessions.
    Sessions,
}

impl Args {
    /// Asks the data plane, and says what it said.
    pub(super) async fn execute(&self, link: &Path, json: bool) -> anyhow::Result<String> {
        if self.even {
            return self.even(link, json).await;
        }
        let Some((session, worker)) = self.session.zip(self.to) else {
            return super::say(&crate::observer::balancing(link).await?, json, text);
        };
        let to = Destination { worker, is_dry: self.dry_run };
        let placed = crate::observer::locate(link, Whose::Session(session), Some(to)).await?;
        super::say(&placed, json, |placed| match to.is_dry && placed.worker != worker {
            true => format!("session {session} at worker {} can go to worker {worker}\n", placed.worker),
            false => super::sessions::text(placed),
        })
    }

    async fn even(&self, link: &Path, json: bool) -> anyhow::Result<String> {
        let by = match self.by {
            By::Load => Measure::Load,
            By::Sessions => Measure::Sessions,
        };
        let steps = crate::observer::even(link, by, self.dry_run).await?;
        let patience = if self.dry_run { Duration::ZERO } else { PATIENCE };
        let moved = until_moved(link, patience);
        let balancing = super::progress::during("sessions are on their way", patience, moved).await?;
        let told = serde_json::json!({ "steps": steps, "balance": balancing });
        super::say(&told, json, |_| match self.dry_run {
            true => planned(&steps),
            false => ordered(&steps, &balancing),
        })
    }
}

/// How it stands once all have moved, or patience is at its end.
async fn until_moved(link: &Path, patience: Duration) -> anyhow::Result<Balancing> {
    let until = Instant::now() + patience;
    loop {
        let balancing = crate::observer::balancing(link).await?;
        if balancing.waiting == 0 || Instant::now() >= until {
            return Ok(balancing);
        }
        sleep(LOOK).await;
    }
}

/// What would move.
fn planned(steps: &[Step]) -> String {
    if steps.is_empty() {
        return "nothing would move: workers are as even as sessions can make them\n".to_owned();
    }
    let line = |Step { session, from, to }: &Step| {
        format!("session {session} would move from worker {from} to worker {to}\n")
    };
    steps.iter().map(line).collect()
}

/// What came of it.
fn ordered(steps: &[Step], balancing: &Balancing) -> String {
    let outcome = match (steps.len(), balancing.waiting) {
        (0, _) => "nothing moves: workers are as even as sessions can make them".to_owned(),
        (count, 0) => format!("{count} sessions were told to move"),
        (count, waiting) => format!("{count} sessions were told to move, {waiting} are on their way still"),
    };
    format!("{outcome}\n\n{}", text(balancing))
}

fn text(balancing: &Balancing) -> String {
    let mut text =
        format!("{:<8} {:>10} {:>10} {:>8} {:>12}\n", "worker", "sessions", "room", "busy", "packets/s");
    for (number, worker) in balancing.workers.iter().enumerate() {
        text += &line(number, worker, balancing.workers.len() == 1);
    }
    let _ = writeln!(text, "\n{}", about(balancing));
    let placed = balancing.placed;
    if balancing.workers.len() > 1 {
        let _ = writeln!(
            text,
            "new sessions went {} by the hash of the address, {} to a less busy worker, {} to whom they share a meter with, {} \
             where there was room, {} to the worker of Ethernet frames",
            placed.address, placed.less_busy, placed.meter, placed.no_room, placed.frames
        );
    }
    let Balancing { moved, stayed, waiting, .. } = balancing;
    let _ = writeln!(text, "{moved} sessions moved, {stayed} were to and stayed, {waiting} are on their way");
    balancing.last.iter().take(SHOWN).for_each(|last| text += &past(last));
    text
}

fn line(number: usize, worker: &WorkerLoad, is_alone: bool) -> String {
    let WorkerLoad { sessions, room, busy_permille, packets_per_s } = *worker;
    let room = match room {
        0 => "(hands on)".to_owned(),
        room => room.to_string(),
    };
    // Nobody asks a worker that has nobody to be compared with.
    let (busy, rate) = match is_alone {
        true => ("-".to_owned(), "-".to_owned()),
        false => (format!("{:.1} %", f64::from(busy_permille) / 10.0), packets_per_s.to_string()),
    };
    format!("{number:<8} {sessions:>10} {room:>10} {busy:>8} {rate:>12}\n")
}

/// What the node does without an order.
fn about(balancing: &Balancing) -> String {
    let Balancing { mode, margin_permille, uneven_s, patience_s, .. } = *balancing;
    if balancing.workers.len() == 1 {
        return "there is one worker, which has all sessions".to_owned();
    }
    let points = margin_permille / 10;
    let does = match mode {
        BalanceMode::Off => "each session is at the worker of its user's address".to_owned(),
        BalanceMode::New => {
            format!("new sessions avoid a worker that is busier than another by {points} points")
        }
        BalanceMode::All => format!(
            "new sessions avoid a worker that is busier than another by {points} points, and some leave it after {patience_s} s"
        ),
    };
    let lasts = match (mode, uneven_s) {
        (BalanceMode::Off, _) => String::new(),
        (_, 0) => "; none is so now".to_owned(),
        (_, seconds) => format!("; one has been so for {seconds} s"),
    };
    let led = match balancing.is_led_by_devices {
        true => {
            "; a card leads packets by their users' addresses: of a session elsewhere each is handed over"
        }
        false => "",
    };
    format!("balance = \"{}\": {does}{lasts}{led}", mode.name())
}

fn past(last: &Move) -> String {
    let from = last.from.map_or_else(|| "-".to_owned(), |from| from.to_string());
    let cause = match last.cause {
        MoveCause::Asked => "by name",
        MoveCause::Evening => "to make workers even",
        MoveCause::Balance => "as one worker was busier for long",
        MoveCause::Meter => "to a meter it shares with others",
    };
    let Move { session, to, age_ms, .. } = last;
    let outcome = last.stayed.as_ref().map_or_else(String::new, |why| format!("; stayed: {why}"));
    format!("  {:>8.1} s ago {session} {from} -> {to}, {cause}{outcome}\n", *age_ms as f64 / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dplink::Placements;

    fn balancing() -> Balancing {
        let worker =
            |sessions, busy_permille| WorkerLoad { sessions, room: 100, busy_permille, packets_per_s: 7 };
        let last = Move {
            session: Seid(16),
            from: Some(0),
            to: 1,
            cause: MoveCause::Evening,
            age_ms: 1_500,
            stayed: None,
        };
        let stayed = Move { stayed: Some("it shares".to_owned()), cause: MoveCause::Asked, ..last.clone() };
        Balancing {
            mode: BalanceMode::All,
            margin_permille: 200,
            uneven_s: 3,
            patience_s: 10,
            workers: vec![WorkerLoad { room: 0, ..worker(0, 5) }, worker(20, 612), worker(4, 30)],
            placed: Placements { address: 20, less_busy: 4, ..Placements::default() },
            moved: 1,
            stayed: 1,
            last: vec![stayed, last],
            ..Balancing::default()
        }
    }

    #[test]
    fn it_is_told_how_sessions_are_spread_and_why() {
        let text = text(&balancing());
        for line in [
            "0                 0 (hands on)    0.5 %            7\n",
            "1                20        100   61.2 %            7\n",
            "busier than another by 20 points, and some leave it after 10 s; one has been so for 3 s\n",
            "new sessions went 20 by the hash of the address, 4 to a less busy worker, 0 to whom",
            "1 sessions moved, 1 were to and stayed, 0 are on their way\n",
            "       1.5 s ago 0x0000000000000010 0 -> 1, by name; stayed: it shares\n",
            "       1.5 s ago 0x0000000000000010 0 -> 1, to make workers even\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        let json = serde_json::to_string(&balancing()).unwrap();
        assert!(json.contains("\"mode\":\"all\"") && json.contains("\"cause\":\"evening\""), "{json}");
        let led = Balancing { is_led_by_devices: true, mode: BalanceMode::Off, ..balancing() };
        let text = super::text(&led);
        let told =
            "balance = \"off\": each session is at the worker of its user's address; a card leads packets by";
        assert!(text.contains(told) && text.contains("of a session elsewhere each is handed over"), "{text}");
    }

    #[test]
    fn of_one_worker_only_the_sessions_are_told() {
        let text = text(&Balancing {
            workers: vec![WorkerLoad { sessions: 3, room: 9, ..WorkerLoad::default() }],
            ..Balancing::default()
        });
        assert!(text.contains("0                 3          9        -            -\n"), "{text}");
        assert!(text.contains("there is one worker") && !text.contains("new sessions"), "{text}");
    }

    #[test]
    fn what_would_move_is_told_from_what_was_told_to() {
        let steps = [Step { session: Seid(16), from: 0, to: 1 }];
        assert_eq!(planned(&steps), "session 0x0000000000000010 would move from worker 0 to worker 1\n");
        assert!(planned(&[]).starts_with("nothing would move"));
        assert!(ordered(&steps, &balancing()).starts_with("1 sessions were told to move\n\nworker "));
        let waiting = Balancing { waiting: 1, ..balancing() };
        assert!(
            ordered(&steps, &waiting).starts_with("1 sessions were told to move, 1 are on their way still\n")
        );
        assert!(ordered(&[], &balancing()).starts_with("nothing moves"));
    }

    #[test]
    fn orders_are_one_or_the_other() {
        use clap::Parser;
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let is_taken = |line: &str| Line::try_parse_from(line.split(' ')).is_ok();
        for line in [
            "x",
            "x --even",
            "x --even --by sessions --dry-run",
            "x --move 0x10 --to 1",
            "x --move 16 --to 1 --dry-run",
        ] {
            assert!(is_taken(line), "{line}");
        }
        for line in [
            "x --dry-run",
            "x --to 1",
            "x --move 16",
            "x --move 0 --to 1",
            "x --by load",
            "x --even --move 16 --to 1",
        ] {
            assert!(!is_taken(line), "{line}");
        }
        assert!(
            Line::try_parse_from(["x", "--move", "0x10", "--to", "1"])
                .is_ok_and(|line| line.args.session == Some(Seid(16)))
        );
    }
}
