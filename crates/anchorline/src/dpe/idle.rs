//! What workers do while no packet waits: what the configuration wants, or what there is on this machine instead.

use super::ports::Port;
use crate::settings::Settings;
use dataplane::Worker;
use dpdk::{Backoff, Choice, CpuRests, Eal, Idle, Manner, Rests};
use dplink::WorkerIdle;
use host::{Ceiling, Facts, Pace, Power, Root};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// So long without a packet, and a worker's frequency goes down. To change it is reckoned with some tens of
/// microseconds of the worker's time: no more than a thousandth of this, however packets come.
const CALM: Duration = Duration::from_millis(100);

/// What there is for idle workers, and what is wanted of it.
pub(super) struct Idling {
    idle: Idle,
    longest: Duration,
    tsc_hz: u64,
    cpu: CpuRests,
    /// By worker, if they are named.
    cpus: Vec<usize>,
    root: Root,
    power: Power,
    /// For notes on what frequencies were.
    run_dir: PathBuf,
}

/// What a worker does between its turns. It belongs to the worker's thread; a frequency is given back when it goes.
pub(super) struct Patience {
    worker: usize,
    backoff: Backoff,
    rests: Rests,
    /// Whether only a packet for its queues ends a rest.
    monitors: bool,
    pace: Option<Pace<Ceiling>>,
}

impl Idling {
    /// On this machine.
    pub(super) fn here(settings: &Settings, eal: &Eal) -> Self {
        Self::at(Root::system(), settings, (CpuRests::here(), eal.tsc_hz()))
    }

    fn at(root: Root, settings: &Settings, (cpu, tsc_hz): (CpuRests, u64)) -> Self {
        let (dpe, run_dir) = (&settings.dpe, settings.run_dir.clone());
        // Whatever is wanted now: a data plane that was killed may have wanted another thing.
        let given_back = host::give_back(&root, &run_dir);
        if !given_back.is_empty() {
            tracing::info!(
                "CPUs {given_back:?} get the frequency back that a data plane before this one had lowered"
            );
        }
        let power = match dpe.idle {
            Idle::Scale => Facts::read(&root).power,
            _ => Power::default(),
        };
        let longest = Duration::from_micros(dpe.idle_us);
        Self { idle: dpe.idle, longest, tsc_hz, cpu, cpus: dpe.crew.cpus.clone(), root, power, run_dir }
    }

    /// What a worker does, and what is told of that.
    pub(super) fn of(&self, number: usize, worker: &Worker<Port>) -> (Patience, WorkerIdle) {
        let queues: Vec<_> = match self.idle {
            Idle::Monitor => {
                worker.ports().flat_map(Port::queues).map(|queue| queue.can_be_waited_on()).collect()
            }
            _ => Vec::new(),
        };
        let Choice { manner, lacks } = Choice::of(self.idle, self.cpu, &queues);
        let (pace, told) = match self.idle {
            Idle::Scale => self.scale(number),
            _ => (None, WorkerIdle { does: manner.does().to_owned(), lacks }),
        };
        let patience = Patience {
            worker: number,
            backoff: Backoff::new(self.idle, self.longest),
            rests: Rests::new(manner, self.tsc_hz),
            monitors: manner == Manner::Monitor,
            pace,
        };
        (patience, told)
    }

    /// Lowers a worker's frequency after a while, where that can be had.
    fn scale(&self, number: usize) -> (Option<Pace<Ceiling>>, WorkerIdle) {
        let ceiling = match self.cpus.get(number) {
            None => Err("this worker may run on any CPU".to_owned()),
            Some(cpu) => Ceiling::of(&self.root, &self.power, *cpu, &self.run_dir),
        };
        let looks_on = Manner::Look.does();
        match ceiling {
            Ok(ceiling) => {
                let (low, high) = ceiling.range_khz();
                let does = format!(
                    "{looks_on}, its CPU at {} MHz in place of {} after {} ms",
                    low / 1_000,
                    high / 1_000,
                    CALM.as_millis()
                );
                (Some(Pace::new(ceiling, CALM)), WorkerIdle { does, lacks: None })
            }
            Err(why) => {
                let lacks = Some(format!("not available here, because {why}"));
                (None, WorkerIdle { does: looks_on.to_owned(), lacks })
            }
        }
    }

    /// Tells the log what is not to be had, each reason once.
    pub(super) fn say(&self, idle: &[WorkerIdle]) {
        self.lacking(idle).iter().for_each(|line| tracing::info!("{line}"));
    }

    fn lacking(&self, idle: &[WorkerIdle]) -> Vec<String> {
        let mut lacking: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for (number, WorkerIdle { does, lacks }) in idle.iter().enumerate() {
            if let Some(why) = lacks {
                lacking.entry((why, does)).or_default().push(number.to_string());
            }
        }
        let wanted = format!("{:?}", self.idle).to_lowercase();
        let line = |((why, does), workers): (&(&str, &str), &Vec<String>)| {
            format!("idle = \"{wanted}\": {why}; instead, it {does} (worker {})", workers.join(", "))
        };
        lacking.iter().map(line).collect()
    }

    /// What there is to tell whoever looks at the workers: nothing, where they are to look on.
    pub(super) fn told(&self, idle: Vec<WorkerIdle>) -> Vec<WorkerIdle> {
        if self.idle == Idle::Poll { Vec::new() } else { idle }
    }
}

/// A worker between two turns.
pub(super) trait Resting {
    /// Orders that the last turn obeyed.
    fn obeyed(&self) -> usize;
    /// Whether anything waits for it that no queue tells of.
    fn is_waited_for(&self) -> bool;
    /// It rests for so long at most.
    fn rest(&self, rests: &Rests, longest: Duration);
}

impl Resting for Worker<Port> {
    fn obeyed(&self) -> usize {
        self.obeyed()
    }

    fn is_waited_for(&self) -> bool {
        self.is_waited_for()
    }

    fn rest(&self, rests: &Rests, longest: Duration) {
        rests.rest(longest, self.ports().flat_map(Port::queues));
    }
}

impl Patience {
    /// After each turn, with the time it had and the packets it received.
    #[inline]
    pub(super) fn turn(&mut self, worker: &impl Resting, now_ns: u64, received: usize) {
        if let Some(pace) = &mut self.pace
            && let Err(error) = pace.turn(now_ns, received > 0)
        {
            let number = self.worker;
            tracing::warn!(
                "worker {number}: the frequency of its CPU cannot be changed: {error}; it is tried again"
            );
        }
        let Some(rest) = self.backoff.turn(received, worker.obeyed()) else { return };
        // A packet for its queues would end the rest; what comes by rings would wait for the end.
        if !(self.monitors && worker.is_waited_for()) {
            worker.rest(&self.rests, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Of three workers on CPUs 0 to 2, of which CPU 0 alone can be slowed down by itself.
    fn idling(idle: Idle, folder: &std::path::Path) -> Idling {
        let write = |file: &str, text: &str| {
            let path = folder.join("sys/devices/system/cpu").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        };
        write("online", "0-2");
        for (cpu, together) in [(0, "0"), (1, "1 2"), (2, "1 2")] {
            write(&format!("cpu{cpu}/cpufreq/affected_cpus"), together);
            write(&format!("cpu{cpu}/cpufreq/scaling_min_freq"), "800000");
            write(&format!("cpu{cpu}/cpufreq/scaling_max_freq"), "3500000");
        }
        let root = Root::at(folder);
        let power = Facts::read(&root).power;
        Idling {
            idle,
            longest: Duration::from_micros(50),
            tsc_hz: 1_000_000_000,
            cpu: CpuRests::default(),
            cpus: vec![0, 1, 2],
            root,
            power,
            run_dir: folder.join("run"),
        }
    }

    fn highest(folder: &std::path::Path) -> String {
        let path = folder.join("sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq");
        std::fs::read_to_string(path).unwrap().lines().next().unwrap().to_owned()
    }

    #[test]
    fn a_worker_slows_its_own_cpu_and_gives_it_back_when_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (pace, told) = idling(Idle::Scale, folder.path()).scale(0);
        let mut pace = pace.unwrap();
        assert_eq!(told.does, "looks on, its CPU at 800 MHz in place of 3500 after 100 ms");
        let calm_ns = CALM.as_nanos() as u64;
        pace.turn(calm_ns - 1, false).unwrap();
        assert_eq!(highest(folder.path()), "3500000");
        pace.turn(calm_ns, false).unwrap();
        assert_eq!(highest(folder.path()), "800000");
        pace.turn(calm_ns + 1, true).unwrap();
        assert_eq!(highest(folder.path()), "3500000");
        pace.turn(3 * calm_ns, false).unwrap();
        assert_eq!(highest(folder.path()), "800000");
        // As a thread that panics does.
        let worker = std::thread::spawn(move || {
            let _pace = pace;
            std::panic::resume_unwind(Box::new("a panic"));
        });
        assert!(worker.join().is_err());
        assert_eq!(highest(folder.path()), "3500000");
    }

    #[test]
    fn who_cannot_be_slowed_down_looks_on_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let idling = idling(Idle::Scale, folder.path());
        let all: Vec<WorkerIdle> = (0..4).map(|number| idling.scale(number).1).collect();
        assert_eq!(all[0].lacks, None);
        assert_eq!(
            all[3].lacks.as_deref(),
            Some("not available here, because this worker may run on any CPU")
        );
        assert!(all[1..].iter().all(|one| one.does == "looks on"));
        let said = idling.lacking(&all);
        assert_eq!(said.len(), 3, "{said:#?}");
        let expected = "idle = \"scale\": not available here, because CPU 1 has its frequency together with CPUs 2; \
                        instead, it looks on (worker 1)";
        assert_eq!(said[0], expected);
    }

    /// Notes how long it has rested.
    #[derive(Default)]
    struct Noting {
        obeyed: usize,
        is_waited_for: bool,
        rested: RefCell<Vec<Duration>>,
    }

    impl Resting for Noting {
        fn obeyed(&self) -> usize {
            self.obeyed
        }

        fn is_waited_for(&self) -> bool {
            self.is_waited_for
        }

        fn rest(&self, _rests: &Rests, longest: Duration) {
            self.rested.borrow_mut().push(longest);
        }
    }

    /// As after many turns without anything to do.
    fn patience(manner: Manner) -> Patience {
        let mut backoff = Backoff::new(Idle::Monitor, Duration::from_micros(50));
        while backoff.turn(0, 0).is_none() {}
        let monitors = manner == Manner::Monitor;
        Patience { worker: 0, backoff, rests: Rests::new(manner, 1_000_000_000), monitors, pace: None }
    }

    /// What came by a ring would lie there until the wait ends, as no queue's packet ends it.
    #[test]
    fn nobody_waits_for_a_packet_while_a_ring_has_some() {
        let rested = |manner, worker: &Noting, received| {
            patience(manner).turn(worker, 1, received);
            worker.rested.take().len()
        };
        let waited_for = Noting { is_waited_for: true, ..Noting::default() };
        assert_eq!(rested(Manner::Monitor, &waited_for, 0), 0);
        // These rests are short at first, and cost less than another turn for each order of many.
        assert_eq!(rested(Manner::LightSleep, &waited_for, 0), 1);
        for manner in [Manner::Monitor, Manner::LightSleep] {
            assert_eq!(rested(manner, &Noting::default(), 0), 1, "{manner:?}");
            assert_eq!(rested(manner, &Noting::default(), 1), 0, "{manner:?}");
            assert_eq!(rested(manner, &Noting { obeyed: 1, ..Noting::default() }, 0), 0, "{manner:?}");
        }
    }

    #[test]
    fn every_wait_has_the_bound_of_the_configuration() {
        let (mut patience, worker) = (patience(Manner::Monitor), Noting::default());
        (0..1_000).for_each(|now_ns| patience.turn(&worker, now_ns, 0));
        assert_eq!(worker.rested.take().into_iter().max(), Some(Duration::from_micros(50)));
    }

    #[test]
    fn a_reason_is_said_once_for_all_workers() {
        let folder = tempfile::tempdir().unwrap();
        let idling = idling(Idle::Monitor, folder.path());
        let lacks = Some("not available here, because it rains".to_owned());
        let one = WorkerIdle { does: "rests".to_owned(), lacks };
        let expected =
            "idle = \"monitor\": not available here, because it rains; instead, it rests (worker 0, 1)";
        assert_eq!(idling.lacking(&[one.clone(), one]), [expected]);
        assert_eq!(idling.lacking(&[WorkerIdle::default()]), [] as [String; 0]);
    }
}
