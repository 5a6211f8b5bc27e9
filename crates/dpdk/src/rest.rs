//! How an idle worker rests: what its CPU and its queues' drivers have for what it is to do, and what there is instead.

use crate::error::Error;
use crate::queue::{RxQueue, WAITED_ON_MAX, wait};
use crate::{Idle, sys, tsc};
use std::time::Duration;

/// Looks between two times the clock is asked, where only this CPU's short pause is to be had.
const PAUSES: u32 = 16;
const NO_LIGHT_SLEEP: &str = "this CPU has no WAITPKG (or its hypervisor hides it)";

/// What a CPU has for rests, as far as this release of DPDK knows to use it: 22.11 takes WAITPKG, not AMD's MONITORX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuRests {
    /// A light sleep until a time.
    pub pause: bool,
    /// One that also ends when a line of memory is written to, as where a queue's next packet goes.
    pub monitor: bool,
    /// One that ends when any of several lines is; with WAITPKG it takes transactional memory (RTM).
    pub monitor_multi: bool,
}

impl CpuRests {
    /// Those of this machine.
    pub fn here() -> Self {
        // SAFETY: reads what the CPU says of itself.
        let bits = unsafe { sys::anchorline_rests() };
        Self {
            pause: bits & sys::ANCHORLINE_REST_PAUSE != 0,
            monitor: bits & sys::ANCHORLINE_REST_MONITOR != 0,
            monitor_multi: bits & sys::ANCHORLINE_REST_MONITOR_MULTI != 0,
        }
    }

    /// What it has where no packet can be waited for.
    const fn until_a_time(self) -> Manner {
        if self.pause { Manner::LightSleep } else { Manner::ShortPauses }
    }
}

/// How a worker rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Not at all.
    Look,
    /// In a light sleep of the CPU.
    LightSleep,
    /// In the CPU's short pauses, one after the other.
    ShortPauses,
    /// In the kernel.
    Sleep,
    /// In a light sleep of the CPU that a packet ends.
    Monitor,
}

impl Manner {
    /// What a worker does that rests so.
    pub const fn does(self) -> &'static str {
        match self {
            Self::Look => "looks on",
            Self::LightSleep => "rests in a light sleep of its CPU",
            Self::ShortPauses => "repeats short pauses of its CPU",
            Self::Sleep => "sleeps",
            Self::Monitor => "waits on its receive queues in a light sleep of its CPU",
        }
    }
}

/// How a worker rests, and why not as it was told to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What there is.
    pub manner: Manner,
    /// "not available here, because ...", where that is less than what was asked for.
    pub lacks: Option<String>,
}

impl Choice {
    /// What a CPU has for `idle`, for a worker of such queues: each can be waited on, or why not.
    pub fn of(idle: Idle, cpu: CpuRests, queues: &[Result<(), Error>]) -> Self {
        match idle {
            Idle::Poll | Idle::Scale => Self { manner: Manner::Look, lacks: None },
            Idle::Sleep => Self { manner: Manner::Sleep, lacks: None },
            Idle::Pause => {
                let lacks = (!cpu.pause).then(|| NO_LIGHT_SLEEP.to_owned());
                Self::unless(lacks, cpu.until_a_time(), cpu)
            }
            Idle::Monitor => Self::unless(no_monitor(cpu, queues), Manner::Monitor, cpu),
        }
    }

    fn unless(lacks: Option<String>, manner: Manner, cpu: CpuRests) -> Self {
        match lacks {
            None => Self { manner, lacks: None },
            Some(why) => {
                Self { manner: cpu.until_a_time(), lacks: Some(format!("not available here, because {why}")) }
            }
        }
    }
}

/// Why a worker of such queues cannot wait on them, if it cannot: on all of them, since the one left out would not wake it.
fn no_monitor(cpu: CpuRests, queues: &[Result<(), Error>]) -> Option<String> {
    if !cpu.monitor {
        return Some(NO_LIGHT_SLEEP.to_owned());
    }
    if let Some(Err(error)) = queues.iter().find(|queue| queue.is_err()) {
        return Some(error.to_string());
    }
    match queues.len() {
        0 => Some("this worker has no receive queue: others hand packets over to it".to_owned()),
        1 => None,
        2..=WAITED_ON_MAX if cpu.monitor_multi => None,
        count @ 2..=WAITED_ON_MAX => Some(format!(
            "this worker has {count} receive queues, and this CPU waits on one (no RTM, or its hypervisor hides it)"
        )),
        count => Some(format!("this worker has {count} receive queues; {WAITED_ON_MAX} can be waited on")),
    }
}

/// What a rest is made of; tests have a clock and a CPU of their own.
trait Hands {
    fn now(&mut self) -> u64;
    fn sleep(&mut self, rest: Duration);
    /// Until a time, or less.
    fn light_sleep(&mut self, until: u64);
    fn short_pauses(&mut self);
    /// As a light sleep, or false at once.
    fn monitor(&mut self, until: u64) -> bool;
}

/// The rests of a worker. It belongs to the worker's thread.
#[derive(Clone, Debug)]
pub struct Rests {
    manner: Manner,
    /// Where a packet cannot be waited for after all.
    until_a_time: Manner,
    tsc_hz: u64,
}

impl Rests {
    /// `tsc_hz` cycles make a second.
    pub fn new(manner: Manner, tsc_hz: u64) -> Self {
        Self { manner, until_a_time: CpuRests::here().until_a_time(), tsc_hz }
    }

    /// Rests for so long at most, give or take what the kernel adds to a sleep. `queues` are all that the worker receives
    /// from: a packet for one of them ends the rest where it is waited for, which nothing else does that comes from other
    /// threads.
    pub fn rest<'q>(&self, rest: Duration, queues: impl Iterator<Item = &'q RxQueue>) {
        self.rest_by(rest, &mut ThisCpu(Some(queues)));
    }

    fn rest_by(&self, rest: Duration, hands: &mut impl Hands) {
        if self.manner == Manner::Sleep {
            return hands.sleep(rest);
        }
        let until = hands.now().wrapping_add((rest.as_secs_f64() * self.tsc_hz as f64) as u64);
        match self.manner {
            Manner::Look | Manner::Sleep => {}
            Manner::Monitor if hands.monitor(until) => {}
            Manner::Monitor => pause(self.until_a_time, until, hands),
            manner => pause(manner, until, hands),
        }
    }
}

fn pause(manner: Manner, until: u64, hands: &mut impl Hands) {
    if manner == Manner::LightSleep {
        return hands.light_sleep(until);
    }
    while hands.now() < until {
        hands.short_pauses();
    }
}

/// This CPU, and the queues of the worker that rests.
struct ThisCpu<I>(Option<I>);

impl<'q, I: Iterator<Item = &'q RxQueue>> Hands for ThisCpu<I> {
    fn now(&mut self) -> u64 {
        tsc()
    }

    fn sleep(&mut self, rest: Duration) {
        std::thread::sleep(rest);
    }

    fn light_sleep(&mut self, until: u64) {
        // SAFETY: DPDK refuses where the CPU has none; it ends by itself, at the latest then.
        unsafe { sys::anchorline_pause_until(until) };
    }

    fn short_pauses(&mut self) {
        (0..PAUSES).for_each(|_| std::hint::spin_loop());
    }

    fn monitor(&mut self, until: u64) -> bool {
        self.0.take().is_some_and(|queues| wait(queues, until))
    }
}

/// Makes the kernel wake the calling thread when its sleep ends, and not up to 50 microseconds later, as it does to
/// gather timers. Where the kernel refuses, sleeps are that much longer.
pub fn wake_on_time() {
    // SAFETY: changes a number of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong) };
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: CpuRests = CpuRests { pause: false, monitor: false, monitor_multi: false };
    const WAITPKG: CpuRests = CpuRests { pause: true, monitor: true, monitor_multi: false };
    const WITH_RTM: CpuRests = CpuRests { monitor_multi: true, ..WAITPKG };
    /// As later releases of DPDK make of MONITORX.
    const MONITORX: CpuRests = CpuRests { pause: false, ..WAITPKG };

    fn choose(idle: Idle, cpu: CpuRests, queues: usize) -> (Manner, String) {
        let Choice { manner, lacks } = Choice::of(idle, cpu, &vec![Ok(()); queues]);
        (manner, lacks.unwrap_or_default())
    }

    #[test]
    fn what_cpu_and_queues_have_for_it_is_done() {
        for (idle, cpu, queues, expected) in [
            (Idle::Poll, NOTHING, 2, Manner::Look),
            (Idle::Scale, WITH_RTM, 1, Manner::Look),
            (Idle::Sleep, NOTHING, 2, Manner::Sleep),
            (Idle::Pause, WAITPKG, 2, Manner::LightSleep),
            (Idle::Monitor, WAITPKG, 1, Manner::Monitor),
            (Idle::Monitor, WITH_RTM, 2, Manner::Monitor),
            (Idle::Monitor, WITH_RTM, WAITED_ON_MAX, Manner::Monitor),
            (Idle::Monitor, MONITORX, 1, Manner::Monitor),
        ] {
            assert_eq!(choose(idle, cpu, queues), (expected, String::new()), "{idle:?} {cpu:?} {queues}");
        }
    }

    #[test]
    fn what_they_have_not_is_said_and_something_else_done() {
        for (idle, cpu, queues, instead, why) in [
            (Idle::Pause, NOTHING, 1, Manner::ShortPauses, "this CPU has no WAITPKG"),
            (Idle::Monitor, NOTHING, 1, Manner::ShortPauses, "this CPU has no WAITPKG"),
            (Idle::Monitor, WAITPKG, 2, Manner::LightSleep, "2 receive queues, and this CPU waits on one"),
            (Idle::Monitor, MONITORX, 2, Manner::ShortPauses, "2 receive queues, and this CPU waits on one"),
            (Idle::Monitor, WITH_RTM, 0, Manner::LightSleep, "this worker has no receive queue"),
            (Idle::Monitor, WITH_RTM, WAITED_ON_MAX + 1, Manner::LightSleep, "65 receive queues; 64 can"),
        ] {
            let (manner, lacks) = choose(idle, cpu, queues);
            assert_eq!(manner, instead, "{idle:?} {cpu:?} {queues}");
            assert!(lacks.starts_with("not available here, because ") && lacks.contains(why), "{lacks}");
        }
    }

    /// The one that is left out could not wake the worker.
    #[test]
    fn one_driver_without_an_address_is_enough_to_wait_on_none() {
        let device = "net_tap0".to_owned();
        let refused = Error::Device { device, action: "waited on", reason: "not supported".to_owned() };
        let Choice { manner, lacks } = Choice::of(Idle::Monitor, WITH_RTM, &[Ok(()), Err(refused)]);
        assert_eq!(manner, Manner::LightSleep);
        let expected = "not available here, because device \"net_tap0\" cannot be waited on: not supported";
        assert_eq!(lacks.as_deref(), Some(expected));
    }

    /// A machine on which looking at the clock takes a cycle and short pauses take a hundred.
    #[derive(Default)]
    struct Made {
        clock: u64,
        monitors: bool,
        done: Vec<(&'static str, u64)>,
    }

    impl Hands for Made {
        fn now(&mut self) -> u64 {
            self.clock += 1;
            self.clock
        }

        fn sleep(&mut self, rest: Duration) {
            self.done.push(("sleep", rest.as_micros() as u64));
        }

        fn light_sleep(&mut self, until: u64) {
            self.done.push(("light sleep", until));
        }

        fn short_pauses(&mut self) {
            self.clock += 100;
        }

        fn monitor(&mut self, until: u64) -> bool {
            self.done.push(("monitor", until));
            self.monitors
        }
    }

    fn rest(manner: Manner, until_a_time: Manner, monitors: bool) -> (Vec<(&'static str, u64)>, u64) {
        let mut made = Made { clock: 999, monitors, ..Made::default() };
        Rests { manner, until_a_time, tsc_hz: 1_000_000_000 }.rest_by(Duration::from_micros(50), &mut made);
        (made.done, made.clock)
    }

    #[test]
    fn every_rest_has_an_end() {
        let light = |manner, monitors| rest(manner, Manner::LightSleep, monitors).0;
        assert_eq!(light(Manner::Look, false), []);
        assert_eq!(light(Manner::Sleep, false), [("sleep", 50)]);
        assert_eq!(light(Manner::LightSleep, false), [("light sleep", 51_000)]);
        assert_eq!(light(Manner::Monitor, true), [("monitor", 51_000)]);
        let (done, clock) = rest(Manner::ShortPauses, Manner::ShortPauses, false);
        assert!(done.is_empty() && (51_000..51_200).contains(&clock), "{clock}");
    }

    /// Or an idle worker would go round as if it polled.
    #[test]
    fn who_cannot_wait_for_a_packet_rests_as_long_without() {
        let (done, _) = rest(Manner::Monitor, Manner::LightSleep, false);
        assert_eq!(done, [("monitor", 51_000), ("light sleep", 51_000)]);
        let (done, clock) = rest(Manner::Monitor, Manner::ShortPauses, false);
        assert_eq!(done, [("monitor", 51_000)]);
        assert!((51_000..51_200).contains(&clock), "{clock}");
    }
}
