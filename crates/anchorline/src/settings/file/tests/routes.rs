//! `[[dpe.route]]`: each leads somewhere, and no two from one place to the same.

use super::{EXAMPLE, error};
use crate::settings::file::check;

#[test]
fn a_prefix_ends_where_its_length_says() {
    for (wrong, meant) in [("10.1.2.3/8", "10.0.0.0/8"), ("0.0.0.1/0", "0.0.0.0/0")] {
        let refused = error("prefix = \"0.0.0.0/0\"", &format!("prefix = \"{wrong}\""));
        let expected = format!("prefix = \"{wrong}\": {wrong} has bits behind its length: is {meant} meant?");
        assert!(refused.contains(&expected) && refused.contains(", line "), "{refused}");
    }
    let right = EXAMPLE.replacen("prefix = \"0.0.0.0/0\"", "prefix = \"10.1.2.3/32\"", 1);
    assert!(config::parse(&right, check).is_ok());
}
