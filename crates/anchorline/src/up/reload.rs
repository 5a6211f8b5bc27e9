//! A configuration that changes while the node runs: what each engine goes by, and whether another one may take its place.

mod trial;

use super::Role;
use crate::settings::{Args, Settings};
use anyhow::{Context, ensure};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// A folder that is away, as of a server that does not answer, must not keep the next signal waiting for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Associations last over a restart, and a control plane that knows the node by another name would not know whose reports it
/// gets.
const FAREWELL: &str = ", and before that `anchorline ctl release --wait`, as control planes are associated with the name it has";

/// The configuration of each engine, which reads the file at every start of its own.
pub(super) struct InForce {
    dpe: Arc<Settings>,
    cpe: Arc<Settings>,
}

impl InForce {
    pub(super) fn new(settings: Settings) -> Self {
        let settings = Arc::new(settings);
        Self { dpe: Arc::clone(&settings), cpe: settings }
    }

    /// An engine has started; whether the control plane has to start again for it. Should the data plane's part be another
    /// by now, the control plane must go by the same.
    pub(super) fn started(&mut self, role: Role, args: &Args) -> bool {
        let Ok(next) = args.load().map(Arc::new) else { return false };
        if role == Role::Cpe {
            self.cpe = next;
            return false;
        }
        let is_another = !next.is_for_the_same_data_plane(&self.dpe);
        if is_another {
            tracing::warn!("the data plane starts with another configuration; so does the control plane");
        }
        self.dpe = next;
        is_another
    }

    /// SIGHUP: whether the control plane may begin anew by what the file says now. One that could not use it would be down
    /// until somebody notices, so what can be tried beside the one that runs is tried before that is ended.
    ///
    /// # Errors
    /// Why it has to go on as it is.
    pub(super) async fn check(&self, args: &Args) -> anyhow::Result<()> {
        let next = args.load().context("the configuration is wrong")?;
        let mut others = next.another_data_plane(&self.dpe);
        let is_another_node = next.is_another_node(&self.cpe);
        others.extend(is_another_node.then_some("node.id"));
        let before = if is_another_node { FAREWELL } else { "" };
        ensure!(
            others.is_empty(),
            "{}: another value takes a restart of the node{before}",
            others.join(", ")
        );
        let now = Arc::clone(&self.cpe);
        let tried = timeout(PATIENCE, spawn_blocking(move || trial::of(&next, &now))).await;
        tried.with_context(|| format!("its files could not be tried in {PATIENCE:?}"))??
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const EXAMPLE: &str = include_str!("../../../../config/upf.toml");

    /// What SIGHUP says of a node of the example, whose file is another now.
    async fn said(from: &str, to: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let args = Args { config: folder.path().join("upf.toml") };
        let in_force = InForce::new(Settings::parse(EXAMPLE).unwrap());
        assert!(EXAMPLE.contains(from), "the example has no {from}");
        fs::write(&args.config, EXAMPLE.replacen(from, to, 1)).unwrap();
        in_force.check(&args).await.map_or_else(|error| format!("{error:#}"), |()| "right".to_owned())
    }

    #[tokio::test]
    async fn what_takes_a_restart_is_said_by_its_keys() {
        let renamed = said("id = \"10.40.0.2\"\n", "id = \"upf.example\"\n").await;
        let farewell = "before that `anchorline ctl release --wait`, as control planes are associated with the name it has";
        assert_eq!(renamed, format!("node.id: another value takes a restart of the node, and {farewell}"));
        let folders = said("/run/anchorline\"", "/run/other\"").await;
        assert_eq!(folders, "node.run_dir: another value takes a restart of the node");
    }

    #[tokio::test]
    async fn a_file_that_is_right_but_of_no_use_is_refused_before_anything_ends() {
        assert_eq!(said("associate = []", "associate = [\"10.40.0.3\"]").await, "right");
        assert!(said("associate = []", "associate = 1").await.starts_with("the configuration is wrong: "));
        let away = said("10.40.0.2:8805", "192.0.2.9:8805").await;
        assert!(
            away.starts_with("n4.listen: PFCP cannot be served at 192.0.2.9:8805: no interface"),
            "{away}"
        );
    }
}
