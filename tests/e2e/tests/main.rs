//! End-to-end tests: real programs in real network namespaces, each test in a laboratory of its own.
//!
//! Where the machine gives no namespaces they are skipped with a notice; `ANCHORLINE_REQUIRE_E2E=1` makes that a
//! failure.

mod charging;
mod content;
mod dialects;
mod ethernet;
mod events;
mod farewell;
mod gateways;
mod inherited;
mod laboratory;
mod messages;
mod observe;
mod predefined;
mod programs;
mod punt;
mod refusal;
mod requests;
mod restart;
mod routing;
mod soak;
mod steering;
mod survive;
mod traffic;

use anyhow::{Result, anyhow};
use lab::privilege::{self, Entry};
use lab::{Core, Lab, interrupt};
use libtest_mimic::{Arguments, Failed, Trial};
use std::env;
use std::process::ExitCode;

/// A test: its name, who forwards in its laboratory, and what it does there.
type Test = (&'static str, Core, fn(&Lab) -> Result<()>);

fn main() -> Result<ExitCode> {
    let entry = privilege::enter()?;
    interrupt::watch()?;
    let refused = match entry {
        Entry::Inside => None,
        Entry::Refused(lack) => Some(lack),
    };
    let required = env::var("ANCHORLINE_REQUIRE_E2E").is_ok_and(|value| value == "1");
    if let (Some(lack), false) = (&refused, required) {
        println!("skipped: {lack}");
    }
    let tests = [
        laboratory::TESTS,
        traffic::TESTS,
        restart::TESTS,
        survive::TESTS,
        soak::TESTS,
        refusal::TESTS,
        observe::TESTS,
        predefined::TESTS,
        steering::TESTS,
        charging::TESTS,
        farewell::TESTS,
        inherited::TESTS,
        content::TESTS,
        requests::TESTS,
        programs::TESTS,
        ethernet::TESTS,
        gateways::TESTS,
        messages::TESTS,
        events::TESTS,
        dialects::TESTS,
        punt::TESTS,
        routing::TESTS,
    ]
    .concat();
    let trials = tests.into_iter().map(|test| trial(test, refused.clone(), required)).collect();
    // One after the other: each wants the whole machine.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn trial((name, core, test): Test, refused: Option<String>, required: bool) -> Trial {
    let skip = refused.is_some() && !required;
    let body = move || match refused {
        Some(lack) => Err(Failed::from(format!("ANCHORLINE_REQUIRE_E2E=1, but {lack}"))),
        None => in_a_lab(name, core, test).map_err(|error| Failed::from(format!("{error:#}"))),
    };
    Trial::test(name, body).with_ignored_flag(skip)
}

/// A test that passes leaves nothing; the logs of one that fails stay.
fn in_a_lab(name: &str, core: Core, test: fn(&Lab) -> Result<()>) -> Result<()> {
    let lab = Lab::open(name, core)?;
    test(&lab).map_err(|error| anyhow!("{error:#}\nthe logs are in {}", lab.dir.path().display()))?;
    lab.dir.remove();
    lab.close()
}
