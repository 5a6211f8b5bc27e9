//! Whoever is told without having asked keeps up, or is told later; and the last words.

use super::super::room::Silence;
use super::ending::Heard as Last;
use super::*;
use dataplane::Worker;
use std::future::pending;
use tokio::time::sleep;

/// A server without a port, its worker, and where it listens.
struct Lab {
    server: Server,
    worker: Worker<Silence>,
    _folder: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (engine, worker) = dataplane::connect(&dataplane::Config::default(), vec![], || 0).unwrap();
        let server = Server::listen(&folder.path().join("dpe.sock"), engine).unwrap();
        Self { server: server.with_interim_usage(Duration::from_millis(8)), worker, _folder: folder }
    }

    /// A connection, of which nothing is written.
    fn connect(&mut self, id: ConnectionId) -> mpsc::Receiver<Notice> {
        let (notices, queue) = mpsc::channel(NOTICES_AHEAD);
        self.server.connections.insert(id, Connection { notices, role: Some(Role::Control) });
        queue
    }

    /// Whether the worker is asked what was used, once it is time.
    fn asks(&mut self) -> bool {
        std::thread::sleep(Duration::from_millis(3));
        self.server.ask_interim();
        self.worker.turn(1);
        let asked = self.worker.obeyed() > 0;
        self.server.tell_reports();
        asked
    }

    fn tell(&mut self, id: ConnectionId, count: usize) {
        (0..count).for_each(|_| self.server.tell(id, Notice::InterimUsage { counts: vec![] }));
    }
}

#[tokio::test]
async fn what_can_be_told_later_is_not_asked_for_while_the_control_plane_is_behind() {
    let mut lab = Lab::new();
    let (mut control, _other) = (lab.connect(1), lab.connect(2));
    assert!(!lab.asks(), "nobody would be told");
    lab.server.in_control = Some(1);
    assert!(lab.asks() && lab.asks());
    lab.tell(2, 2 * BEHIND);
    lab.tell(1, BEHIND);
    assert!(lab.asks(), "only another one is behind");
    lab.tell(1, 1);
    assert!(!lab.asks());
    control.try_recv().unwrap();
    assert!(lab.asks());
    lab.server.close(1);
    assert!(!lab.asks());
}

/// What becomes of the last words, where the control plane answers so once they are said, or hangs up.
async fn last_words(answer: Option<Command>) -> Last {
    let mut lab = Lab::new();
    let (mut notices, tell) = (lab.connect(1), lab.server.tell.clone());
    lab.server.in_control = Some(1);
    let Lab { server, worker, .. } = &mut lab;
    let works = async {
        loop {
            worker.turn(1);
            sleep(POLL).await;
        }
    };
    let hears = async {
        assert_eq!(notices.recv().await, Some(Notice::Leaving), "it is the first to be said");
        while notices.recv().await != Some(Notice::Farewell) {}
        tell.send((2, Some(Command::Farewell { is_kept: true }))).await.unwrap();
        tell.send((1, answer)).await.unwrap();
        pending().await
    };
    tokio::select! {
        last = server.last_words() => last,
        last = works => last,
        last = hears => last,
    }
}

#[tokio::test]
async fn only_who_says_so_has_heard_what_all_sessions_have_used() {
    assert_eq!(last_words(Some(Command::Farewell { is_kept: true })).await, Last::Kept);
    assert_eq!(last_words(Some(Command::Farewell { is_kept: false })).await, Last::Unkept);
    assert_eq!(last_words(None).await, Last::Unconfirmed);
    assert_eq!(Lab::new().server.last_words().await, Last::ByNobody);
}
