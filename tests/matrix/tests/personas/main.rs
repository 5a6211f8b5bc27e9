//! Every control plane's way of speaking, and every procedure it has: the emulator says it, the user plane does it, and
//! packets show what was done. The table is printed with `--nocapture`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests say plainly what they expect"
)]

mod anew;
mod bench;
mod cells;
mod field;
mod flows;
mod lives;
mod only;
mod packets;
#[path = "../../../../crates/wire/pfcp/tests/common/pcap.rs"]
#[allow(dead_code, missing_docs, unreachable_pub, reason = "shared with tests of other crates")]
mod pcap;
mod persona;
mod ports;
mod predefined;
#[path = "../../../../crates/wire/pfcp/tests/common/record.rs"]
#[allow(missing_docs, unreachable_pub, reason = "shared with tests of other crates")]
mod record;

use cells::Cell;
use persona::{PERSONAS, Persona};

/// A row of the matrix.
type Row = (&'static str, fn(&Persona) -> Cell);

const ROWS: [Row; 29] = [
    ("association", cells::association),
    ("association by us", cells::association_by_us),
    ("establishment", cells::establishment),
    ("activation", cells::activation),
    ("IPv6 packets", cells::ipv6),
    ("three ports", ports::three_ports),
    ("behind translation", ports::behind_translation),
    ("idle and wake", cells::idle),
    ("handover", cells::handover),
    ("router solicitation", cells::solicitation),
    ("dedicated flow", flows::dedicated),
    ("predefined rules", predefined::predefined),
    ("indirect forwarding", flows::forwarding),
    ("usage query", flows::query),
    ("usage grant", flows::grant),
    ("rates", field::rates),
    ("gates", field::gates),
    ("inactivity", field::inactivity),
    ("path failure", field::path_failure),
    ("radio anew", field::radio_restart),
    ("repeated requests", field::repeated),
    ("lost answers", field::lost_answers),
    ("refused change", field::refused_change),
    ("forgetful radio", field::forgetful_radio),
    ("silence", field::silence),
    ("control plane anew", anew::control_plane_restart),
    ("processes anew", anew::processes_end),
    ("restoration", lives::restoration),
    ("deletion and release", lives::deletion),
];

#[test]
fn every_persona_has_its_procedures_done() {
    let (mut empty, mut wrong) = (vec![], vec![]);
    let header = PERSONAS.iter().map(|persona| format!("{:>14}", persona.name));
    let mut table = format!("{:<21}{}\n", "", header.collect::<String>());
    for (name, cell) in ROWS {
        table += &format!("{name:<21}");
        for persona in &PERSONAS {
            let whose = format!("{name}, {}", persona.name);
            // One that fails says why, and the others are still seen.
            let mark = match std::panic::catch_unwind(|| cell(persona)) {
                Ok(Ok(())) => "done",
                Ok(Err(why)) => {
                    empty.push(format!("{whose}: {why}"));
                    "-"
                }
                Err(_) => {
                    wrong.push(format!("{whose} failed"));
                    "FAILED"
                }
            };
            // A persona that lost a procedure would otherwise go unseen.
            if (mark == "-") != persona.lacks.contains(&name) {
                wrong.push(format!("{whose} is not what it should be"));
            }
            table += &format!("{mark:>14}");
        }
        table += "\n";
    }
    println!("{table}");
    empty.iter().for_each(|line| println!("- {line}"));
    assert!(wrong.is_empty(), "{wrong:#?}");
}
