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

#[test]
fn a_next_hop_is_not_this_node() {
    let via = |via: &str| error("via = \"10.50.0.1\"", &format!("via = \"{via}\""));
    for own in ["10.50.0.2", "10.30.0.2"] {
        let refused = via(own);
        let expected = format!("via = \"{own}\": is an address of this node: a next hop is another's");
        assert!(refused.contains(&expected) && refused.contains(", line "), "{refused}");
    }
    for everybody in ["10.50.0.255", "10.50.0.0"] {
        let refused = via(everybody);
        assert!(refused.contains(&format!("via = \"{everybody}\": is everybody in the subnet")), "{refused}");
    }
    let ipv6 = EXAMPLE.replacen("# ipv6 =", "ipv6 =", 1).replacen("0.0.0.0/0", "::/0", 1);
    let ipv6 = ipv6.replacen("via = \"10.50.0.1\"", "via = \"2001:db8:3::2\"", 1);
    assert!(config::parse(&ipv6, check).unwrap_err().to_string().contains("is an address of this node"));
    // In another network it is a station's.
    let port = "[[dpe.port]]\nname = \"ims\"\ndevice = \"net_tap9\"\ninterface = \"core\"\naddress = \"10.50.0.9/24\"\nnetwork_instance = \"ims\"";
    let route = "[[dpe.route]]\nprefix = \"0.0.0.0/0\"\nvia = \"10.50.0.2\"\nnetwork_instance = \"ims\"";
    assert!(config::parse(&format!("{EXAMPLE}\n{port}\n{route}\n"), check).is_ok());
}

#[test]
fn a_prefix_has_one_route_on_a_side_of_a_network() {
    let port = "[[dpe.port]]\nname = \"ims\"\ndevice = \"net_tap9\"\ninterface = \"core\"\naddress = \"10.50.0.9/24\"\nnetwork_instance = \"ims\"";
    let with = |via: &str| {
        let route = format!("[[dpe.route]]\nprefix = \"0.0.0.0/0\"\nvia = {via}\n");
        config::parse(&format!("{EXAMPLE}\n{port}\n{route}"), check)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    assert_eq!(with("\"10.30.0.1\""), Ok(()), "the other side has its own");
    assert_eq!(with("\"10.50.0.1\"\nnetwork_instance = \"IMS\""), Ok(()), "so has another network");
    let refused = with("\"10.50.0.7\"").unwrap_err();
    let line = EXAMPLE.lines().count() + 9;
    let expected = format!("line {line}: prefix = \"0.0.0.0/0\": another route of this side and network");
    assert!(refused.contains(&expected), "{refused}");
}
