//! What another value of takes a restart of the node, by key.

use super::{CrewSettings, DpeSettings, Settings};
use crate::content::Sources;

impl Settings {
    /// What both engines have to go by, and all their sessions, and is another here.
    pub(crate) fn another_data_plane(&self, other: &Self) -> Vec<&'static str> {
        // All of them by name, here and below: a key that is added and not looked at does not compile. What is not bound is
        // the control plane's, which begins anew (of `node_id` see below); of `charging` the data plane has a part.
        let Self {
            run_dir,
            state_dir,
            dpe,
            content,
            charging: _,
            node_id: _,
            advertised: _,
            n4: _,
            metrics: _,
        } = self;
        let node = [
            ("node.run_dir", *run_dir != other.run_dir),
            ("node.state_dir", *state_dir != other.state_dir),
            ("[[charging.content]]", self.charged() != other.charged()),
        ];
        let (absent, other_absent) = (Sources::default(), Sources::default());
        let content = content.as_ref().unwrap_or(&absent);
        let other_content = other.content.as_ref().unwrap_or(&other_absent);
        let keys = node.into_iter().chain(content.compared(other_content)).chain(dpe.compared(&other.dpe));
        keys.filter_map(|(key, is_another)| is_another.then_some(key)).collect()
    }

    /// Whether control planes that are associated would not know the node again: an association is between two Node IDs from
    /// its setup to its release (TS 29.244 6.2.6 to 6.2.8), and no message gives one of them another.
    pub(crate) fn is_another_node(&self, other: &Self) -> bool {
        self.node_id != other.node_id
    }

    /// Whether a control plane engine of this configuration goes with a data plane engine of another, and has the same
    /// sessions.
    pub(crate) fn is_for_the_same_data_plane(&self, other: &Self) -> bool {
        self.another_data_plane(other).is_empty()
    }
}

impl Sources {
    /// Every key that the data plane goes by from its start, and whether it is another. Rules and categories it is told
    /// while it runs.
    fn compared(&self, other: &Self) -> [(&'static str, bool); 4] {
        let Self { rules: _, categories: _, resolvers, inspections, connection_s, enriched_connections } =
            self;
        [
            ("content.resolvers", *resolvers != other.resolvers),
            ("content.inspections", *inspections != other.inspections),
            ("content.connection_s", *connection_s != other.connection_s),
            ("content.enriched_connections", *enriched_connections != other.enriched_connections),
        ]
    }
}

impl DpeSettings {
    /// Every key, and whether it is another.
    fn compared(&self, other: &Self) -> impl Iterator<Item = (&'static str, bool)> {
        let Self {
            memory_mb,
            huge_pages,
            idle,
            idle_us,
            crew,
            sessions,
            pdrs,
            framed_routes,
            flows,
            interim_usage,
            limits,
            echo,
            ports,
            routes,
            policies,
        } = self;
        let CrewSettings { workers, distributors, cpus, balance } = crew;
        let is_other_room = *sessions != other.sessions;
        let workers = [
            ("dpe.memory_mb", *memory_mb != other.memory_mb),
            ("dpe.huge_pages", *huge_pages != other.huge_pages),
            ("dpe.idle", *idle != other.idle),
            ("dpe.idle_us", *idle_us != other.idle_us),
            ("dpe.workers", *workers != other.crew.workers),
            ("dpe.cpus", *cpus != other.crew.cpus),
            ("dpe.distributors", *distributors != other.crew.distributors),
            ("dpe.balance", *balance != other.crew.balance),
        ];
        let tables = [
            ("dpe.sessions", is_other_room),
            // Where it is not said, it follows from that.
            ("dpe.pdrs", *pdrs != other.pdrs && !is_other_room),
            ("dpe.framed_routes", *framed_routes != other.framed_routes),
            ("dpe.flows", *flows != other.flows),
            ("dpe.interim_usage_s", *interim_usage != other.interim_usage),
            ("[dpe.limits]", *limits != other.limits),
            ("[dpe.echo]", *echo != other.echo),
            ("[[dpe.port]]", *ports != other.ports),
            ("[[dpe.route]]", *routes != other.routes),
            ("[[dpe.forwarding_policy]]", *policies != other.policies),
        ];
        workers.into_iter().chain(tables)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../../../config/upf.toml");

    #[test]
    fn each_key_that_takes_a_restart_is_named() {
        let now = Settings::parse(EXAMPLE).unwrap();
        assert!(now.is_for_the_same_data_plane(&now) && !now.is_another_node(&now));
        for (from, to, key) in [
            ("/run/anchorline", "/run/other", "node.run_dir"),
            ("/var/lib/anchorline", "/var/lib/other", "node.state_dir"),
            ("memory_mb = 256", "memory_mb = 257", "dpe.memory_mb"),
            ("huge_pages = \"auto\"", "huge_pages = \"never\"", "dpe.huge_pages"),
            ("idle = \"poll\"", "idle = \"sleep\"", "dpe.idle"),
            ("# idle_us = 50", "idle_us = 51", "dpe.idle_us"),
            ("# workers = 2", "workers = 2", "dpe.workers"),
            ("# cpus = [1, 2]", "cpus = [1]", "dpe.cpus"),
            ("# balance = \"new\"", "balance = \"off\"", "dpe.balance"),
            ("sessions = 100000", "sessions = 100001", "dpe.sessions"),
            ("# pdrs = 1600000", "pdrs = 1600001", "dpe.pdrs"),
            ("framed_routes = 16384", "framed_routes = 16385", "dpe.framed_routes"),
            ("flows = 2000000", "flows = 2000001", "dpe.flows"),
            ("# interim_usage_s = 30", "interim_usage_s = 31", "dpe.interim_usage_s"),
            ("# [dpe.limits]", "[dpe.limits]\nkept_s = 7", "[dpe.limits]"),
            ("period_s = 60", "period_s = 61", "[dpe.echo]"),
            ("mtu = 1500", "mtu = 1501", "[[dpe.port]]"),
            ("via = \"10.50.0.1\"", "via = \"10.50.0.3\"", "[[dpe.route]]"),
            ("\n[n4]", "\n[[dpe.forwarding_policy]]\nname = \"a\"\n[n4]", "[[dpe.forwarding_policy]]"),
        ] {
            assert!(EXAMPLE.contains(from), "the example has no {from}");
            let next = Settings::parse(&EXAMPLE.replacen(from, to, 1)).unwrap();
            assert_eq!(next.another_data_plane(&now), [key]);
        }
        let charged = "[charging]\ndirectory = \"/cdr\"\nformats = [\"json\"]\n[[charging.content]]\nrating_group = 8\n";
        let next = Settings::parse(&format!("{EXAMPLE}\n{charged}")).unwrap();
        assert_eq!(next.another_data_plane(&now), ["[[charging.content]]"]);
    }

    #[test]
    fn of_content_what_the_data_plane_is_told_may_change_and_what_it_starts_with_is_named() {
        let now = Settings::parse(EXAMPLE).unwrap();
        let with =
            |keys: &str| Settings::parse(&format!("{EXAMPLE}\n[content]\nrules = \"/r\"\n{keys}")).unwrap();
        let told = with("[[content.category]]\nname = \"games\"\nfile = \"/hosts\"");
        assert!(told.is_for_the_same_data_plane(&now) && now.is_for_the_same_data_plane(&told));
        for (line, key) in [
            ("resolvers = [\"192.0.2.53\"]", "content.resolvers"),
            ("inspections = 100", "content.inspections"),
            ("connection_s = 900", "content.connection_s"),
            ("enriched_connections = 100", "content.enriched_connections"),
        ] {
            let next = with(line);
            assert_eq!(next.another_data_plane(&told), [key]);
            // Without the section, the data plane has what it would have by one that says none of it.
            assert_eq!(next.another_data_plane(&now), [key]);
            assert_eq!(now.another_data_plane(&next), [key]);
        }
    }
}
