//! A whole node: both engines as child processes, restarted when they die, ended together.

mod engine;
mod hung;
mod manager;
mod reload;

use crate::layout;
use crate::log::say;
use crate::settings::{Args, Settings};
pub(crate) use engine::bind_to_parent;
use engine::{Engine, Role, command};
use reload::InForce;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc, watch};

/// Runs until told to stop, or until an engine says at the first start that it can never run like this.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let settings = args.load()?;
    layout::check_cpus(&settings.dpe.crew.cpus)?;
    crate::log::settle();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(supervise(args, settings));
    // Not waiting for a trial of files that nobody gives us.
    runtime.shutdown_background();
    ended
}

async fn supervise(args: &Args, settings: Settings) -> anyhow::Result<()> {
    let (stop, told) = watch::channel(Vec::new());
    let (tell, heard) = mpsc::channel(8);
    let again = Arc::new(Notify::new());
    let engine = |role| {
        let (told, tell, again) = (told.clone(), tell.clone(), Arc::clone(&again));
        let socket = settings.control();
        anyhow::Ok(Engine { role, command: command(args, role)?, socket, told, tell, again })
    };
    let mut dpe = tokio::spawn(engine(Role::Dpe)?.keep());
    let mut cpe = tokio::spawn(engine(Role::Cpe)?.keep());
    let ended = tokio::select! {
        () = told_to_stop() => None,
        () = watch_over(args, InForce::new(settings), (heard, &again)) => None,
        result = &mut dpe => Some(result),
        result = &mut cpe => Some(result),
    };
    manager::stopping();
    // The data plane first: it tells the control plane what sessions have used.
    let mut outcome = ended.map_or(Ok(()), |result| result?);
    for (role, task) in [(Role::Dpe, dpe), (Role::Cpe, cpe)] {
        stop.send_modify(|told| told.push(role));
        if !task.is_finished() {
            outcome = outcome.and(task.await?);
        }
    }
    outcome
}

/// What becomes of an engine.
#[derive(Clone, Copy, Debug)]
enum Event {
    Started(Role),
    Ready(Role),
}

/// Says so once both engines are ready, and has the control plane begin anew when its configuration is another.
async fn watch_over(
    args: &Args,
    mut in_force: InForce,
    (mut heard, again): (mpsc::Receiver<Event>, &Notify),
) {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return std::future::pending().await };
    let (mut ready, mut was_said) = (Vec::<Role>::new(), false);
    loop {
        let event = tokio::select! {
            event = heard.recv() => event,
            _ = hangup.recv() => None,
        };
        match event {
            Some(Event::Ready(role)) => {
                ready.push(role);
                if ready.len() == 2 {
                    manager::ready();
                    if !std::mem::replace(&mut was_said, true) {
                        say("up: ready");
                    }
                }
            }
            Some(Event::Started(role)) => {
                ready.retain(|other| *other != role);
                manager::status(&format!("the {} starts", role.name()));
                if in_force.started(role, args) {
                    again.notify_one();
                }
            }
            None => match in_force.check(args).await {
                Err(error) => {
                    tracing::error!("nothing changes: {error:#}");
                    manager::status(&format!("the last change of its configuration was refused: {error:#}"));
                }
                Ok(()) => {
                    tracing::info!("the control plane starts again, with the configuration as it is now");
                    manager::status("the control plane starts again, with another configuration");
                    again.notify_one();
                }
            },
        }
    }
}

/// Returns on SIGTERM and SIGINT. SIGHUP ends nobody: the terminal a node was started from may be closed.
pub(crate) async fn told_to_stop() {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let [Ok(mut term), Ok(mut int), Ok(_hangup)] = kinds.map(signal) else {
        tracing::error!("signals cannot be received; only SIGKILL will end this process");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::{self, UNUSABLE};

    #[test]
    fn a_node_whose_workers_could_not_be_where_they_are_told_to_does_not_start() {
        let folder = tempfile::tempdir().unwrap();
        let args = Args { config: folder.path().join("upf.toml") };
        let text = include_str!("../../../config/upf.toml").replacen("# cpus = [1, 2]", "cpus = [70000]", 1);
        std::fs::write(&args.config, text).unwrap();
        let refused = run(&args).unwrap_err();
        assert!(
            refused.to_string().starts_with("dpe.cpus: no worker can run on CPU 70000; name CPUs"),
            "{refused}"
        );
        assert_eq!(exit::code(Err(refused)), std::process::ExitCode::from(UNUSABLE));
    }
}
