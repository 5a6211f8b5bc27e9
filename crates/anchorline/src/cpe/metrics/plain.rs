//! What is told, in the text format 0.0.4 of Prometheus: for clients that know no OpenMetrics. Samples are the same; but the type and
//! the explanation of a counter are those of its sample, whose name has `_total`, and nothing marks the end.

use std::collections::HashSet;

/// The same as a text of OpenMetrics.
pub(in crate::cpe) fn plain(open_metrics: &str) -> String {
    let counter = |line| str::strip_suffix(str::strip_prefix(line, "# TYPE ")?, " counter");
    let counters: HashSet<&str> = open_metrics.lines().filter_map(counter).collect();
    let lines = open_metrics.lines().filter(|line| *line != "# EOF");
    lines.map(|line| of_counter(line, &counters).unwrap_or_else(|| format!("{line}\n"))).collect()
}

/// A comment about a counter; none, where a line is none.
fn of_counter(line: &str, counters: &HashSet<&str>) -> Option<String> {
    let about = |kind| Some((kind, line.strip_prefix(kind)?));
    let (kind, rest) = about("# TYPE ").or_else(|| about("# HELP "))?;
    let (name, said) = rest.split_once(' ')?;
    counters.contains(name).then(|| format!("{kind}{name}_total {said}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the specification of the format has it: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
    #[test]
    fn comments_name_the_samples_of_counters_and_nothing_ends_it() {
        let told = "# HELP drops Packets.\n# TYPE drops counter\ndrops_total{reason=\"# EOF\"} 1\n\
                    # HELP up Whether counter\n# TYPE up gauge\nup 1\n# EOF\n";
        let expected = "# HELP drops_total Packets.\n# TYPE drops_total counter\ndrops_total{reason=\"# EOF\"} 1\n\
                        # HELP up Whether counter\n# TYPE up gauge\nup 1\n";
        assert_eq!(plain(told), expected);
    }
}
