//! A kernel in memory, with its manners.

use super::Made;
use anchorline_host::tune::{Hands, Plan, Step};
use std::collections::BTreeMap;
use std::io;

/// Files as a kernel keeps them: a choice in brackets stays one, and some take no more than they have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fake {
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) programs: Vec<String>,
    /// Writes and runs until one fails.
    pub(crate) left: Option<usize>,
    /// Files that take no value.
    pub(crate) stubborn: Vec<String>,
}

impl Fake {
    pub(crate) fn of(made: &Made, plan: &Plan) -> Self {
        let mut fake = Self::default();
        for step in &plan.steps {
            if let Step::Write(write) = step {
                let text = std::fs::read_to_string(made.place(&write.path)).unwrap();
                fake.files.insert(write.path.clone(), text);
            }
        }
        fake
    }

    fn act(&mut self) -> io::Result<()> {
        match &mut self.left {
            Some(0) => Err(io::Error::other("it was enough")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Hands for Fake {
    fn read(&mut self, path: &str) -> io::Result<String> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn write(&mut self, path: &str, text: &str) -> io::Result<()> {
        self.act()?;
        if self.stubborn.iter().any(|stubborn| stubborn == path) {
            return Err(io::Error::other("Input/output error"));
        }
        // As intel_pstate: no other preference under the governor `performance`.
        let governor =
            path.strip_suffix("energy_performance_preference").map(|cpu| format!("{cpu}scaling_governor"));
        let governor = governor.and_then(|path| self.files.get(&path));
        if text.trim() != "performance" && governor.is_some_and(|governor| governor.trim() == "performance") {
            return Err(io::Error::other("Device or resource busy"));
        }
        let file = self.files.get_mut(path).ok_or(io::ErrorKind::NotFound)?;
        let choices: Vec<String> =
            file.split_whitespace().map(|choice| choice.trim_matches(['[', ']']).to_owned()).collect();
        if !path.starts_with("/sys") || !file.contains('[') {
            text.clone_into(file);
        } else if choices.iter().any(|choice| choice == text) {
            let chosen =
                |choice: &String| if choice == text { format!("[{choice}]") } else { choice.clone() };
            *file = choices.iter().map(chosen).collect::<Vec<_>>().join(" ") + "\n";
        } else {
            return Err(io::Error::other("Invalid argument"));
        }
        Ok(())
    }

    fn run(&mut self, words: &[String]) -> io::Result<()> {
        self.act()?;
        self.programs.push(words.join(" "));
        Ok(())
    }
}

/// Fails once, and works from then on.
pub(crate) struct Flaky(pub(crate) Fake);

impl Hands for Flaky {
    fn read(&mut self, path: &str) -> io::Result<String> {
        self.0.read(path)
    }

    fn write(&mut self, path: &str, text: &str) -> io::Result<()> {
        let result = self.0.write(path, text);
        self.once(result)
    }

    fn run(&mut self, words: &[String]) -> io::Result<()> {
        let result = self.0.run(words);
        self.once(result)
    }
}

impl Flaky {
    fn once(&mut self, result: io::Result<()>) -> io::Result<()> {
        if self.0.left == Some(0) && result.is_err() {
            self.0.left = None;
        }
        result
    }
}
