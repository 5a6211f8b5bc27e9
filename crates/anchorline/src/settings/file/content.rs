//! `[content]`: content rules, lists of hosts, and how much of it there may be.

use crate::content::Sources;
use crate::settings::values::{ConnectionAge, EnrichedConnections, Inspections};
use config::{Refusal, Spanned};
use dpi::rule_file::Category;
use serde::Deserialize;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    rules: PathBuf,
    #[serde(default)]
    category: Vec<ContentCategory>,
    #[serde(default)]
    resolvers: Vec<Spanned<IpAddr>>,
    #[serde(default)]
    inspections: Inspections,
    #[serde(default)]
    connection_s: ConnectionAge,
    #[serde(default)]
    enriched_connections: EnrichedConnections,
}

/// A list of hosts that are one application.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContentCategory {
    name: Spanned<String>,
    file: PathBuf,
    #[serde(default = "category_precedence")]
    precedence: u32,
    #[serde(default)]
    rating_group: u32,
}

/// Behind most rules, so that one for a host of a category can say otherwise.
const fn category_precedence() -> u32 {
    1_000_000
}

/// Categories of a node.
const CATEGORIES_MAX: usize = 64;

/// Resolvers whose answers tell everybody.
const RESOLVERS_MAX: usize = 64;

/// What the data plane goes by where there is no section: as where one says none of it.
impl Default for Sources {
    fn default() -> Self {
        Self {
            rules: PathBuf::new(),
            categories: vec![],
            resolvers: vec![],
            inspections: Inspections::default().0,
            connection_s: ConnectionAge::default().0,
            enriched_connections: EnrichedConnections::default().0,
        }
    }
}

pub(super) fn check(content: Content) -> Result<Sources, Refusal> {
    let Content { rules, category, resolvers, inspections, connection_s, enriched_connections } = content;
    if let Some(excess) = resolvers.get(RESOLVERS_MAX) {
        return Err(Refusal::of(excess, format!("more than {RESOLVERS_MAX} resolvers")));
    }
    if let Some(excess) = category.get(CATEGORIES_MAX) {
        return Err(Refusal::of(&excess.name, format!("more than {CATEGORIES_MAX} categories")));
    }
    let mut categories = Vec::with_capacity(category.len());
    for ContentCategory { name, file, precedence, rating_group } in category {
        if rules::ApplicationId::new(name.get_ref()).is_none() {
            return Err(Refusal::of(&name, "an application's name has 1 to 255 octets"));
        }
        let name = name.into_inner();
        categories.push((Category { name, precedence, rating_group }, file));
    }
    let (inspections, connection_s) = (inspections.0, connection_s.0);
    let enriched_connections = enriched_connections.0;
    let resolvers = resolvers.into_iter().map(Spanned::into_inner).collect();
    Ok(Sources { rules, categories, resolvers, inspections, connection_s, enriched_connections })
}
