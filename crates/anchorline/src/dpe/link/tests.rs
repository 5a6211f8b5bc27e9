//! Whoever is told without having asked keeps up, or is told later; and the last words.

use super::super::room::Silence;
use super::ending::Heard as Last;
use super::*;
use dataplane::Worker;
use dplink::{ContentPart, Desired};
use rules::{Rules, Seid};
use std::future::pending;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
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
        let reader = tokio::spawn(pending::<()>()).abort_handle();
        self.server.connections.insert(id, Connection { notices, role: Some(Role::Control), reader });
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

/// Whoever connects and says nothing, or only looks, keeps nobody out, and the control plane never goes for others.
#[tokio::test]
async fn for_one_connection_too_many_the_oldest_that_says_nothing_goes() {
    let mut lab = Lab::new();
    let path = lab.server.path.clone();
    let server = async { lab.server.serve().await.unwrap() };
    let clients = async {
        let mut silent = vec![UnixStream::connect(&path).await.unwrap()];
        let mut control = said(&path, Role::Control).await;
        let mut looks = vec![];
        for _ in 0..CONNECTIONS_MAX - 2 {
            looks.push(said(&path, Role::Observer).await);
        }
        sleep(POLL * 20).await;
        silent.push(UnixStream::connect(&path).await.unwrap());
        assert!(is_over(&mut silent[0]).await, "the oldest that said nothing");
        silent.push(UnixStream::connect(&path).await.unwrap());
        assert!(is_over(&mut silent[1]).await);
        looks.push(said(&path, Role::Observer).await);
        assert!(is_over(&mut silent[2]).await);
        looks.push(said(&path, Role::Observer).await);
        assert!(is_over(&mut looks[0]).await, "the oldest that looks");
        assert!(!is_over(&mut looks[1]).await && !is_over(&mut control).await);
    };
    tokio::select! {
        () = server => unreachable!(),
        () = clients => {}
    }
}

async fn said(path: &Path, role: Role) -> UnixStream {
    let mut stream = UnixStream::connect(path).await.unwrap();
    let mut hello = vec![];
    dplink::frame::write(&Command::Hello { version: dplink::VERSION, role }, &mut hello).unwrap();
    stream.write_all(&hello).await.unwrap();
    stream
}

/// Whether the server has hung up, once it has said what it had to say.
async fn is_over(stream: &mut UnixStream) -> bool {
    let mut rest = [0; 4_096];
    let read_to_end = async { while stream.read(&mut rest).await.is_ok_and(|length| length > 0) {} };
    tokio::time::timeout(Duration::from_millis(300), read_to_end).await.is_ok()
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

/// Flows that begin before nobody could tell what they are of.
#[tokio::test]
async fn sessions_come_into_force_behind_the_first_content_rules() {
    let mut lab = Lab::new();
    let mut control = lab.connect(1);
    lab.server.in_control = Some(1);
    let rule = |id| format!("id={id} precedence={id} rating-group=1 host=a{id}.example\n");
    let text: String = (1..8_000).map(rule).collect();
    let part = ContentPart { revision: 5, part: 0, parts: 1, text };
    let put = Command::Put(Desired::new(Seid(7), 1, Rules::default()));
    for command in [Command::PutContent(part), put] {
        lab.server.tell.send((1, Some(command))).await.unwrap();
    }
    let Lab { server, worker, .. } = &mut lab;
    let mut told = vec![];
    let listens = async {
        while told.len() < 2 {
            worker.turn(1);
            sleep(POLL).await;
            told.extend(control.try_recv());
        }
    };
    tokio::select! {
        result = server.serve() => result.unwrap(),
        heard = tokio::time::timeout(Duration::from_secs(60), listens) => heard.unwrap(),
    }
    let [Notice::ContentLoaded { .. }, Notice::Applied { session: Seid(7), .. }] = &told[..] else {
        panic!("{told:?}");
    };
}
