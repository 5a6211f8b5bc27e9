//! Sessions made as each control plane makes them, against the whole node.

use crate::Test;
use anyhow::{Context, Result};
use lab::address::SERVER;
use lab::anchorline::{Node, Ran};
use lab::config::{self, Driver, FTeid};
use lab::measure::Ping;
use lab::{Core, Lab};
use ran::smf::Dialect;
use std::time::Duration;

pub(crate) const TESTS: &[Test] =
    &[("a_user_is_reached_whatever_dialect_its_control_plane_speaks", Core::Engine, all)];

fn all(lab: &Lab) -> Result<()> {
    let node = Node::start(lab, Driver::AfPacket)?;
    // A gateway between two others leads nowhere alone.
    for dialect in Dialect::ALL.into_iter().filter(|dialect| !dialect.is_between()) {
        pings(lab, &node, dialect).with_context(|| format!("dialect {}", dialect.name()))?;
    }
    node.stop()
}

fn pings(lab: &Lab, node: &Node, dialect: Dialect) -> Result<()> {
    let f_teid = if dialect.picks_endpoints() == Some(true) { FTeid::Explicit } else { FTeid::Choose };
    let ran = Ran::run(lab, &config::write_ran_dialect(lab.dir.path(), f_teid, dialect.name())?)?;
    node.wait_sessions(ran.sessions)?;
    Ping::run(&lab.ran, SERVER, (10, Duration::from_millis(20)))?.expect_no_loss()?;
    ran.stop()?;
    node.wait_sessions(0)?;
    node.wait_balance().map(drop)
}
