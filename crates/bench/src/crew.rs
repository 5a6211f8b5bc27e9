//! Several workers, each on a thread and a CPU of its own, in step: they lay out packets, then all run at once, then
//! they count.

use crate::contest::{Field, RUNNERS, Worker};
use crate::interrupt;
use crate::machine::cpu_time;
use crate::meter::{Laid, Took, timed};
use crate::spread::rounded;
use anyhow::anyhow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Looks at the others before a waiting thread lets another run.
const PATIENCE: u32 = 10_000;

/// What keeps them in step.
#[derive(Debug)]
pub(crate) struct Crew {
    workers: usize,
    duration: Duration,
    arrived: AtomicUsize,
    step: AtomicUsize,
    stop: AtomicBool,
}

/// One worker's part of one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stint {
    pub(crate) laid: Laid,
    pub(crate) took: Took,
}

/// The work of one worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stints {
    /// Its rounds, by runner.
    pub(crate) of: [Vec<Stint>; 3],
    /// Share of the time in which it had a CPU.
    pub(crate) cpu_share: f64,
}

impl Crew {
    /// So many workers, for so long.
    pub(crate) fn new(workers: usize, duration: Duration) -> Self {
        let (arrived, step) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { workers, duration, arrived, step, stop: AtomicBool::new(false) }
    }

    /// How many they are.
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// The calling thread's part of all rounds. A worker that failed, even before it began, keeps step until all the
    /// others know.
    pub(crate) fn work<W: Worker>(&self, field: &mut anyhow::Result<Field<'_, W>>) -> Stints {
        let mut stints = Stints::default();
        let (start, busy) = (Instant::now(), cpu_time());
        while !self.is_over(field.is_err() || start.elapsed() >= self.duration) {
            for runner in RUNNERS {
                let laid = hold(field, |field| field.lay(runner));
                self.meet();
                let took = hold(field, |field| Ok(timed(|| field.run(runner))));
                self.meet();
                if let Some((laid, took)) = laid.zip(took) {
                    hold(field, |field| field.take_back(runner, laid));
                    stints.of[runner as usize].push(Stint { laid, took });
                }
            }
        }
        stints.cpu_share = rounded((cpu_time() - busy).as_secs_f64() / start.elapsed().as_secs_f64());
        stints
    }

    /// Whether any worker wants to end: all hear the same.
    pub(crate) fn is_over(&self, wish: bool) -> bool {
        if wish || interrupt::asked() {
            self.stop.store(true, Ordering::SeqCst);
        }
        self.meet();
        let over = self.stop.load(Ordering::SeqCst);
        // Nobody wishes anew before all have heard.
        self.meet();
        over
    }

    /// Waits for the others. It spins: to be woken takes longer than a round may be off.
    pub(crate) fn meet(&self) {
        let step = self.step.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.workers {
            self.arrived.store(0, Ordering::Release);
            self.step.store(step + 1, Ordering::Release);
        }
        let mut looks = 0u32;
        while self.step.load(Ordering::Acquire) == step {
            looks = looks.wrapping_add(1);
            match looks.is_multiple_of(PATIENCE) {
                true => std::thread::yield_now(),
                false => std::hint::spin_loop(),
            }
        }
    }
}

/// Does one thing with what has not failed yet.
fn hold<T, R>(held: &mut anyhow::Result<T>, act: impl FnOnce(&mut T) -> anyhow::Result<R>) -> Option<R> {
    let thing = held.as_mut().ok()?;
    match guarded(|| act(thing)) {
        Ok(done) => Some(done),
        Err(error) => {
            *held = Err(error);
            None
        }
    }
}

/// A thread that panicked would leave the others waiting for ever: a panic is an error here.
///
/// # Errors
/// It panicked, or failed.
pub(crate) fn guarded<R>(act: impl FnOnce() -> anyhow::Result<R>) -> anyhow::Result<R> {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| Err(anyhow!("a worker panicked")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn all_hear_the_wish_of_one_in_the_same_step() {
        let crew = Arc::new(Crew::new(3, Duration::ZERO));
        let steps = |wishes_at: usize| {
            let crew = crew.clone();
            std::thread::spawn(move || (0..).position(|step| crew.is_over(step == wishes_at)))
        };
        let threads = [steps(9), steps(4), steps(7)];
        assert!(threads.into_iter().all(|thread| thread.join().unwrap() == Some(4)));
    }

    #[test]
    fn a_panic_is_an_error_that_stays() {
        let mut held = Ok(1);
        assert_eq!(hold(&mut held, |_| -> anyhow::Result<()> { panic!("as planned") }), None);
        assert_eq!(hold(&mut held, |_| Ok(())), None);
        assert!(held.is_err());
    }
}
