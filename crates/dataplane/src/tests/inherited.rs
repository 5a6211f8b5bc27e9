//! What the next life of the engine knows of connections of the one before it, which was killed.

use super::content::OTHER;
use super::enrich::{FIELD, GET, acknowledge, say, shake_hands};
use super::readdress::{heard_from, sent_to};
use super::redirect::{USER_FIRST, flow};
use super::requests::{Connection, get};
use crate::fixture::{Bench, READDRESSED, SERVED, config, enriched, readdressed, rules};
use crate::{Config, Former, Lasting, Learned, Legacy};
use dplink::Command;
use rules::{Rules, Seid, Urr, UrrId};
use std::path::Path;
use std::sync::Arc;

const NODE: &str = "node";
const SERVER: std::net::Ipv4Addr = std::net::Ipv4Addr::new(203, 0, 113, 80);

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// A life of the engine without sessions, and with other hashes than the one before it.
fn life(folder: &Path, epoch: u64) -> Bench {
    let lasting = Some(Arc::new(Lasting::create(folder, NODE, epoch).unwrap()));
    let mut bench = Bench::over(&Config { lasting, epoch, seed: epoch, ..config() });
    bench.engine.inherit(legacy(folder));
    bench
}

/// Of the only life that is over, which is forgotten then; nothing where there is none.
fn legacy(folder: &Path) -> Legacy {
    let former = Former::all(folder, NODE, |path, error| panic!("{}: {error}", path.display())).pop();
    let Some(former) = former else { return Legacy::default() };
    let legacy = former.legacy().unwrap();
    former.forget().unwrap();
    legacy
}

fn put(bench: &mut Bench, session: u64, rules: Rules) {
    assert!(bench.put(session, 1, rules).is_none());
    assert_eq!(bench.settle(), [super::applied(session, 1)]);
}

fn with_field(request: &[u8]) -> Vec<u8> {
    let line = b"GET /a HTTP/1.1\r\n".len();
    [&request[..line], FIELD, &request[line..]].concat()
}

#[test]
fn numbers_of_a_connection_that_had_fields_stay_apart() {
    let folder = folder();
    let (mut bench, flow) = (life(folder.path(), 7), flow(SERVED));
    put(&mut bench, SERVED, enriched(SERVED));
    shake_hands(&mut bench, &flow);
    let (n, get) = (FIELD.len() as u32, GET.len() as u32);
    assert_eq!(say(&mut bench, &flow, USER_FIRST, GET), (USER_FIRST, with_field(GET)));
    assert_eq!(acknowledge(&mut bench, &flow, USER_FIRST + get + n), USER_FIRST + get);
    let second = USER_FIRST + get;
    assert_eq!(say(&mut bench, &flow, second, GET), (second + n, with_field(GET)));
    // Killed before the server has acknowledged the second one, and twice.
    for epoch in [8, 9] {
        drop(bench);
        bench = life(folder.path(), epoch);
        put(&mut bench, SERVED, enriched(SERVED));
    }
    assert_eq!(say(&mut bench, &flow, second, GET), (second + n, with_field(GET)), "sent again");
    assert_eq!(acknowledge(&mut bench, &flow, second + get + 2 * n), second + get);
    // What the next life does not know is where requests begin; and it knows of the connection without the field's rule.
    drop(bench);
    bench = life(folder.path(), 10);
    put(&mut bench, SERVED, rules(SERVED));
    assert_eq!(say(&mut bench, &flow, second + get, GET), (second + get + 2 * n, GET.to_vec()));
    assert_eq!(acknowledge(&mut bench, &flow, second + 2 * get + 2 * n), second + 2 * get);
}

/// And of those that began anew.
#[test]
fn numbers_of_a_connection_that_is_over_are_nobody_s() {
    let folder = folder();
    let (mut bench, flow) = (life(folder.path(), 7), flow(SERVED));
    put(&mut bench, SERVED, enriched(SERVED));
    shake_hands(&mut bench, &flow);
    say(&mut bench, &flow, USER_FIRST, GET);
    shake_hands(&mut bench, &flow);
    drop(bench);
    let mut bench = life(folder.path(), 8);
    put(&mut bench, SERVED, enriched(SERVED));
    assert_eq!(say(&mut bench, &flow, USER_FIRST + 5, GET), (USER_FIRST + 5, GET.to_vec()));
    // Nor of a session that is no more, while another one has its address.
    shake_hands(&mut bench, &flow);
    say(&mut bench, &flow, USER_FIRST, GET);
    bench.engine.handle(Command::Delete { session: Seid(SERVED) }).unwrap();
    bench.settle();
    drop(bench);
    let mut bench = life(folder.path(), 9);
    put(&mut bench, SERVED, enriched(SERVED));
    assert_eq!(say(&mut bench, &flow, USER_FIRST + 5, GET), (USER_FIRST + 5, GET.to_vec()));
}

#[test]
fn what_answers_a_flow_that_was_sent_elsewhere_comes_from_where_the_user_sent_it() {
    let folder = folder();
    let mut bench = life(folder.path(), 7);
    let elsewhere = crate::fixture::ELSEWHERE.parse().unwrap();
    put(&mut bench, READDRESSED, readdressed(READDRESSED));
    assert_eq!(sent_to(&mut bench, READDRESSED, (4_000, SERVER)), Some(elsewhere));
    drop(bench);
    let mut bench = life(folder.path(), 8);
    put(&mut bench, READDRESSED, rules(READDRESSED));
    assert_eq!(heard_from(&mut bench, READDRESSED, (4_000, elsewhere)), Some(SERVER));
    // Another session with the address has none.
    drop(bench);
    let mut bench = life(folder.path(), 9);
    put(&mut bench, 40, rules(READDRESSED));
    assert_eq!(heard_from(&mut bench, READDRESSED, (4_000, elsewhere)), Some(elsewhere));
}

/// Who comes when all have come was no session of that life.
#[test]
fn what_no_session_came_back_for_is_forgotten() {
    let folder = folder();
    let mut bench = life(folder.path(), 7);
    let elsewhere = crate::fixture::ELSEWHERE.parse().unwrap();
    put(&mut bench, READDRESSED, readdressed(READDRESSED));
    sent_to(&mut bench, READDRESSED, (4_000, SERVER));
    drop(bench);
    let mut bench = life(folder.path(), 8);
    bench.engine.handle(Command::ResyncBegin { recovery_time_stamp: 1 }).unwrap();
    bench.engine.handle(Command::ResyncEnd).unwrap();
    bench.settle();
    put(&mut bench, READDRESSED, rules(READDRESSED));
    assert_eq!(heard_from(&mut bench, READDRESSED, (4_000, elsewhere)), Some(elsewhere));
}

/// What was told is told once; connections go on.
#[test]
fn who_ends_in_order_leaves_connections_and_no_counts() {
    let folder = folder();
    let lasting = Arc::new(Lasting::create(folder.path(), NODE, 7).unwrap());
    let mut bench = Bench::over(&Config { lasting: Some(Arc::clone(&lasting)), epoch: 7, ..config() });
    let mut counted = readdressed(READDRESSED);
    counted.urrs = vec![Urr { id: UrrId(1), ..Urr::default() }];
    counted.pdrs.iter_mut().for_each(|pdr| pdr.urrs = vec![UrrId(1)].into());
    put(&mut bench, READDRESSED, counted);
    sent_to(&mut bench, READDRESSED, (4_000, SERVER));
    drop(bench);
    lasting.forget_counts().unwrap();
    drop(lasting);
    let mut former = Former::all(folder.path(), NODE, |_, _| ()).pop().unwrap();
    assert!(!former.has_counted().unwrap() && !former.legacy().unwrap().is_empty());
    drop(former);
    // A life that knew of none leaves nothing.
    drop(legacy(folder.path()));
    let lasting = Arc::new(Lasting::create(folder.path(), NODE, 8).unwrap());
    let bench = Bench::over(&Config { lasting: Some(Arc::clone(&lasting)), epoch: 8, ..config() });
    drop(bench);
    lasting.forget_counts().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

const RULES: &str = "id=1 precedence=1 rating-group=1 application=service-1 host=one.example\n";
/// In which the application has another number.
const OTHERS: &str = "id=1 precedence=1 rating-group=1 application=service-4 host=four.example\n\
                      id=2 precedence=2 rating-group=1 application=service-1 host=one.example\n";
const ANYTHING: &str = "id=1 precedence=1 rating-group=1 application=service-4 host=four.example\n";

/// A life that has from the last one what was left of its flows.
fn with_flows(connection: &Connection, folder: &Path, epoch: u64) -> Bench {
    let lasting = Lasting::create(folder, NODE, epoch).unwrap();
    let content = connection.bench.engine.content().unwrap();
    lasting.leave(&Learned::new(&content, connection.bench.worker.learned())).unwrap();
    let learned = Learned::take(folder, NODE, |path, error| panic!("{}: {error}", path.display())).unwrap();
    assert_eq!(Learned::take(folder, NODE, |_, _| ()), None, "it is told once");
    let mut config = config();
    config.limits.pdrs = 2_000;
    let mut bench = Bench::over(&Config { seed: epoch, ..config });
    bench.engine.inherit(Legacy::default().with(learned));
    bench
}

fn of_service_1() -> Connection {
    let mut connection = Connection::begin(RULES, 1);
    connection.say(&get("one.example/"), 1);
    connection.answer(1);
    connection.check();
    connection
}

#[test]
fn a_flow_stays_of_its_application_where_a_life_ends_in_order() {
    let folder = folder();
    for (epoch, text, urr) in [(7, RULES, 1), (8, OTHERS, 1), (9, ANYTHING, OTHER)] {
        let connection = of_service_1();
        let bench = with_flows(&connection, folder.path(), epoch);
        let mut connection = connection.go_on_in(bench, text);
        connection.answer(urr);
        connection.say(b"more", urr);
        connection.check();
    }
}

/// With room for a session in service, where flows are kept.
fn keeping_flows(folder: &Path, epoch: u64) -> (Arc<Lasting>, Bench) {
    let lasting = Arc::new(Lasting::create(folder, NODE, epoch).unwrap().keeping_flows(true));
    let mut config = Config { lasting: Some(Arc::clone(&lasting)), epoch, seed: epoch, ..config() };
    config.limits.pdrs = 2_000;
    (lasting, Bench::over(&config))
}

/// What the numbers of its flows stand for has been said; it can say no more.
fn kill(connection: &mut Connection) {
    drop(std::mem::replace(&mut connection.bench, Bench::over(&config())));
}

#[test]
#[cfg_attr(miri, ignore = "Miri maps no files")]
fn a_flow_stays_of_its_application_where_a_life_is_killed() {
    let folder = folder();
    for (epoch, text, urr) in [(7, RULES, 1), (9, OTHERS, 1), (11, ANYTHING, OTHER)] {
        let (lasting, bench) = keeping_flows(folder.path(), epoch);
        let mut connection = of_service_1().go_on_in(bench, RULES);
        lasting.say(&Learned::new(&connection.bench.engine.content().unwrap(), vec![])).unwrap();
        drop(lasting);
        connection.shake_hands(1);
        connection.say(&get("one.example/"), 1);
        kill(&mut connection);
        let learned = Learned::take(folder.path(), NODE, |path, error| panic!("{}: {error}", path.display()));
        let legacy = legacy(folder.path()).with(learned.unwrap());
        let (lasting, mut bench) = keeping_flows(folder.path(), epoch + 1);
        bench.engine.inherit(legacy);
        let mut connection = connection.go_on_in(bench, text);
        connection.answer(urr);
        connection.say(b"more", urr);
        connection.check();
        lasting.forget().unwrap();
    }
}

/// Neither what was kept nor what the numbers stood for is there twice.
#[test]
#[cfg_attr(miri, ignore = "Miri maps no files")]
fn who_ends_in_order_leaves_of_flows_what_it_says_last() {
    let folder = folder();
    let (lasting, bench) = keeping_flows(folder.path(), 7);
    let mut connection = of_service_1().go_on_in(bench, RULES);
    let content = connection.bench.engine.content().unwrap();
    lasting.say(&Learned::new(&content, vec![])).unwrap();
    connection.shake_hands(1);
    connection.say(&get("one.example/"), 1);
    let learned = Learned::new(&content, connection.bench.worker.learned());
    kill(&mut connection);
    lasting.leave(&learned).unwrap();
    drop(lasting);
    assert!(legacy(folder.path()).is_empty());
    assert_eq!(Learned::take(folder.path(), NODE, |_, _| ()), Some(learned));
    // Nothing is said of no flows.
    let (lasting, _bench) = keeping_flows(folder.path(), 8);
    lasting.say(&Learned::new(&content, vec![])).unwrap();
    lasting.leave(&Learned::new(&content, vec![])).unwrap();
    assert_eq!(Learned::take(folder.path(), NODE, |_, _| ()), None);
}

/// A worker that its session has left knows of the flow what may be over.
#[test]
fn of_what_two_workers_know_of_a_flow_the_latter_counts() {
    let mut connection = of_service_1();
    super::reloads::load(&mut connection, OTHERS);
    let content = connection.bench.engine.content().unwrap();
    let four = content.numbers(&[(Some("service-4".to_owned()), None)])[0].unwrap();
    let [flow] = connection.bench.worker.learned()[..] else { panic!("one flow is of an application") };
    let older = crate::LearnedFlow { detected: four, age: flow.age + 1, ..flow };
    for flows in [vec![flow, older], vec![older, flow]] {
        let legacy = Legacy::default().with(Learned::new(&content, flows));
        let mut config = config();
        config.limits.pdrs = 2_000;
        let mut bench = Bench::over(&Config { seed: 7, ..config });
        bench.engine.inherit(legacy);
        let mut connection = of_service_1().go_on_in(bench, OTHERS);
        connection.answer(1);
        connection.check();
    }
}

#[test]
fn what_is_left_of_flows_may_be_damaged() {
    let folder = folder();
    let connection = of_service_1();
    let lasting = Lasting::create(folder.path(), NODE, 7).unwrap();
    let content = connection.bench.engine.content().unwrap();
    let path = lasting.path().with_extension("flows");
    let learned = Learned::new(&content, connection.bench.worker.learned());
    lasting.leave(&learned).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let flows = size_of::<crate::LearnedFlow>();
    for length in 0..whole.len() - flows {
        std::fs::write(&path, &whole[..length]).unwrap();
        let mut unread = 0;
        assert_eq!(Learned::take(folder.path(), NODE, |_, _| unread += 1), None, "{length}");
        assert_eq!(unread, 1);
    }
    std::fs::write(&path, whole).unwrap();
    assert_eq!(Learned::take(folder.path(), NODE, |_, _| ()), Some(learned));
}
