//! `anchorline`: the whole product in one executable.

// It panics where a reader has had enough: `exit::say` does not.
#![deny(clippy::print_stdout)]

mod charged;
mod content;
mod cpe;
mod ctl;
mod doctor;
mod dpe;
mod exit;
mod layout;
mod log;
mod observer;
mod plan;
mod reach;
mod settings;
mod socket;
mod tune;
mod up;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Sessions are many small pieces of memory that come and go: it takes a fifth less time than the C library's, and keeps
/// little of what was given back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A mobile packet core for 4G and 5G at line rate.
#[derive(Parser)]
#[command(version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    role: Role,
}

#[derive(Subcommand)]
enum Role {
    /// Run a whole node: one data plane engine and one control plane engine, restarted when they die.
    Up(settings::Args),
    /// Run the data plane engine alone: ports, sessions, packets.
    Dpe(settings::Args),
    /// Run the control plane engine alone: PFCP (N4) and the session database.
    Cpe(settings::Args),
    /// Emulate a RAN: an SMF, a gNB, and UEs that any program can use through a TUN device.
    Ran(ran::Args),
    /// Measure the data path on this machine, beside yardsticks of the same run.
    Bench(bench::Args),
    /// Make traffic as the models describe it, and write it to a capture.
    Traffic(traffic::Args),
    /// Look into a running node.
    Ctl(ctl::Args),
    /// Examine this host: what of it slows packets down, what that is worth, and what to do.
    Doctor(doctor::Args),
    /// Model what would be: throughput and latency of more cores, from measured costs.
    Plan(plan::Args),
    /// Make this host better for a node while it runs: print what would change, change it, change it back.
    Tune(tune::Args),
}

fn main() -> ExitCode {
    let role = Cli::parse().role;
    log::start(matches!(role, Role::Up(_) | Role::Dpe(_) | Role::Cpe(_)));
    let code = exit::code(match role {
        Role::Up(args) => up::run(&args),
        Role::Dpe(args) => dpe::run(&args),
        Role::Cpe(args) => cpe::run(&args),
        Role::Ran(args) => args.execute(),
        Role::Bench(args) => args.execute(),
        Role::Traffic(args) => args.execute().and_then(|told| exit::say(&told)),
        Role::Ctl(args) => ctl::run(&args),
        Role::Doctor(args) => doctor::run(&args),
        Role::Plan(args) => plan::run(&args),
        Role::Tune(args) => tune::run(&args),
    });
    log::end();
    code
}

#[cfg(test)]
mod tests {
    use super::{Cli, Role, exit};
    use clap::{CommandFactory, Parser};
    use std::process::ExitCode;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_configuration_of_a_ran_that_is_wrong_ends_it_as_one_of_a_node() {
        let folder = tempfile::tempdir().unwrap();
        let wrong = folder.path().join("wrong.toml");
        std::fs::write(&wrong, "[smf]\n").unwrap();
        for file in [wrong, folder.path().join("absent.toml")] {
            let told = Cli::parse_from(["anchorline", "ran", "--config", file.to_str().unwrap()]);
            let Role::Ran(args) = told.role else { panic!("no ran") };
            assert_eq!(exit::code(args.execute()), ExitCode::from(exit::UNUSABLE));
        }
    }

    #[test]
    fn every_subcommand_is_explained() {
        for role in Cli::command().get_subcommands() {
            assert!(role.get_about().is_some(), "{} has no help", role.get_name());
            assert!(role.get_subcommands().all(|view| view.get_about().is_some()), "{}", role.get_name());
        }
    }
}
