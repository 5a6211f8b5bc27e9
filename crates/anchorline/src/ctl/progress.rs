//! How long a command may take still, for who waits at a terminal: on standard error alone, and gone when the command says what
//! came of it.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, interval_at};

/// Between two looks at the clock. What is done by the first is done without a bar.
const BEAT: Duration = Duration::from_millis(250);

/// Does some work, and shows meanwhile what is waited for and for how long at most.
pub(super) async fn during<T>(what: &'static str, most: Duration, work: impl Future<Output = T>) -> T {
    // Hidden where that is no terminal.
    shown(ProgressDrawTarget::stderr(), (what, most), work).await
}

async fn shown<T>(
    target: ProgressDrawTarget,
    (what, most): (&'static str, Duration),
    work: impl Future<Output = T>,
) -> T {
    let bar = ProgressBar::with_draw_target(Some(milliseconds(most)), target);
    bar.set_style(style());
    let mut work = pin!(work);
    let begun = Instant::now();
    let mut beat = interval_at(begun + BEAT, BEAT);
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            _ = beat.tick() => {
                bar.set_message(what);
                bar.set_position(milliseconds(begun.elapsed()));
            }
        }
    };
    bar.finish_and_clear();
    done
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn style() -> ProgressStyle {
    let left = |state: &ProgressState, text: &mut dyn Write| {
        let left_ms = state.len().unwrap_or_default().saturating_sub(state.pos());
        let _ = write!(text, "{}", left_ms.div_ceil(1_000));
    };
    let style = ProgressStyle::with_template("{msg} [{bar:20}] {left} s at most");
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::io;
    use std::sync::{Arc, Mutex};

    /// A terminal of one line: what stands there, and all that ever has.
    #[derive(Clone, Debug, Default)]
    struct Line(Arc<Mutex<(String, String)>>);

    impl TermLike for Line {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            let mut line = self.0.lock().unwrap();
            line.0 += text;
            line.1 += text;
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().0.clear();
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What stood on a terminal at the end, and all that ever had, of work of so many beats.
    fn seen(beats: u32) -> (String, String) {
        let line = Line::default();
        let target = ProgressDrawTarget::term_like(Box::new(line.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let work = async {
            tokio::time::sleep(beats * BEAT).await;
            7
        };
        let asked = ("packets are waited for", Duration::from_secs(10));
        assert_eq!(runtime.block_on(shown(target, asked, work)), 7);
        line.0.lock().unwrap().clone()
    }

    #[test]
    fn who_waits_sees_for_how_long_at_most_and_nothing_is_left_of_it() {
        let (left, all) = seen(3);
        assert!(all.contains("packets are waited for [") && all.contains("10 s at most"), "{all}");
        assert_eq!(left.trim(), "");
        assert_eq!(seen(0).1.trim(), "", "nobody has waited");
    }
}
