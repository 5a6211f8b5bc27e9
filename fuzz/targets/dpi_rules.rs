//! Any text is read as rules, and as a list of hosts, or refused; rules read as they are written, and can be asked; any DNS message teaches or
//! not.

#![no_main]

use dpi::extract::dns::Message;
use dpi::learn::{Asker, Config, Learner, Lookup};
use dpi::matching::Facts;
use dpi::rule_file::{self, Category};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let resolver = std::net::Ipv4Addr::LOCALHOST.into();
    let user = Asker { address: resolver, holder: 1 };
    let lookup = Lookup { instance: 0, user, user_port: 1, resolver };
    let mut learner = Learner::new(Config { names: 8, queries: 8, ..Config::default() });
    let mut answer = bytes.to_vec();
    answer.iter_mut().skip(2).take(1).for_each(|flags| *flags |= 0x80);
    if let Some((query, answer)) = Message::parse(bytes).zip(Message::parse(&answer)) {
        learner.query(&lookup, &query, 0);
        let _ = learner.answer(&lookup, &answer, 1);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let category = Category { name: "list".to_owned(), precedence: 1, rating_group: 1 };
    if let Ok(rules) = category.rules(0, text) {
        assert!(rules.len() <= text.lines().count());
    }
    for read in [rule_file::read_lines, rule_file::read_csv] {
        let Ok(file) = read(text) else { continue };
        let written: String = file.rules().iter().map(|rule| format!("{rule}\n")).collect();
        let again = rule_file::read_lines(&written).expect("what was written reads");
        assert_eq!(again.rules(), file.rules());
        if let Ok(classifier) = file.compile() {
            let facts = Facts { host: Some(bytes), path: Some(bytes), ..Facts::default() };
            classifier.classify(&facts);
        }
    }
});
