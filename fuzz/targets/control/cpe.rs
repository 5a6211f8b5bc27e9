//! What of the control plane engine reads orders.

#[path = "../../../crates/anchorline/src/cpe/control.rs"]
pub(crate) mod control;
#[path = "../../../crates/anchorline/src/cpe/predefined.rs"]
pub(crate) mod predefined;

use crate::settings::Settings;
use control::Done;
use predefined::{Granted, Tables, Wish};
use session::{Change, PredefinedRecord};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

static SETTINGS: LazyLock<Settings> = LazyLock::new(|| {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/upf.toml");
    Settings::read(Path::new(file)).expect("the example is right")
});

/// As far as predefined rules go.
pub(crate) struct Engine {
    tables: Tables,
    kept: BTreeMap<String, PredefinedRecord>,
}

impl Engine {
    pub(crate) fn start(kept: BTreeMap<String, PredefinedRecord>) -> Self {
        Self { tables: Tables::new(&SETTINGS, kept.values().cloned().collect()), kept }
    }

    pub(crate) fn obey(&mut self, wish: &Wish) {
        let changed = match wish {
            Wish::List => return,
            Wish::Put { text } => self.tables.put(text),
            Wish::Remove { names } => self.tables.remove(names),
        };
        let before = self.tables.entries();
        let Ok(changed) = changed else { return assert_eq!(self.tables.entries(), before) };
        self.tables.commit(&changed);
        for change in changed.changes {
            match change {
                Change::SavePredefined(record) => drop(self.kept.insert(record.name.clone(), record)),
                Change::ErasePredefined(name) => drop(self.kept.remove(&name)),
                other => panic!("{other:?}"),
            }
        }
    }

    /// What holds is what would hold after the next start, and can be told.
    pub(crate) fn check(self) {
        let entries = self.tables.entries();
        let again = Self::start(self.kept);
        assert_eq!(again.tables.entries(), entries);
        assert_eq!(again.tables.in_force(), self.tables.in_force());
        let done = Done { predefined: Some(Granted { entries, ..Granted::default() }), ..Done::default() };
        let line = serde_json::to_string(&done).expect("an answer can be written");
        assert_eq!(serde_json::from_str::<Done>(&line).ok(), Some(done));
    }
}
