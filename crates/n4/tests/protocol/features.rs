//! What we say we can do (TS 29.244 8.2.25), and by which test each of it is seen to be done.

use crate::common::smf::setup;
use crate::common::{Lab, SMF, at, config};
use n4::{Config, Predefined, PredefinedRule, UePool};
use pfcp::{Body, Message, UpFeature, UpFunctionFeatures};
use std::path::Path;
use std::time::Duration;

/// What is always said: the feature, a file of tests, and the test in it that fails where the feature is not there. Where what is
/// asked for and what becomes of packets are shown apart, it stands twice.
const ALWAYS: &[(UpFeature, &str, &str)] = &[
    (UpFeature::Ftup, "n4/tests/protocol/dialects.rs", "every_way_to_ask_for_an_endpoint_gets_an_ipv4_one"),
    (UpFeature::Pfdm, "n4/tests/protocol/pfds.rs", "pfds_of_an_application_are_replaced_added_and_removed"),
    (UpFeature::Pfde, "n4/tests/protocol/pfds.rs", "several_values_of_one_pfd_and_all_its_kinds_count"),
    (
        UpFeature::Ddnd,
        "n4/tests/protocol/paging.rs",
        "the_bar_delays_the_report_and_what_comes_meanwhile_goes_along",
    ),
    (
        UpFeature::Dlbd,
        "n4/tests/protocol/extended_buffering.rs",
        "while_it_lasts_nobody_is_told_and_then_of_the_next_packet",
    ),
    (
        UpFeature::Dlbd,
        "dataplane/src/tests/kept/extended.rs",
        "once_it_is_over_what_waited_is_dropped_and_the_next_packet_is_told_of",
    ),
    (UpFeature::Heeu, "dataplane/src/tests/enrich.rs", "every_request_of_a_connection_gets_its_field"),
    (UpFeature::Heeu, "n4/tests/protocol/forwarding.rs", "header_enrichment_comes_and_goes"),
    (
        UpFeature::Treu,
        "../tests/matrix/tests/personas/only.rs",
        "requests_of_a_redirected_user_are_answered_with_the_portal",
    ),
    (UpFeature::Frrt, "n4/tests/protocol/framed.rs", "networks_behind_a_user_match_as_its_own_address_does"),
    (
        UpFeature::Frrt,
        "dataplane/src/tests/framed.rs",
        "an_address_leads_to_the_user_who_has_it_or_the_longest_network_around_it",
    ),
    (UpFeature::Quoac, "n4/tests/protocol/usage_quotas.rs", "a_quota_has_a_far_of_its_own"),
    (
        UpFeature::Quoac,
        "dataplane/src/tests/redirect.rs",
        "a_quota_that_is_used_up_leads_to_the_portal_and_a_new_one_back",
    ),
    (UpFeature::Empu, "n4/tests/protocol/forwarding.rs", "one_path_change_is_one_end_marker"),
    (UpFeature::Empu, "dataplane/src/tests/kept.rs", "a_tunnel_that_ends_gets_one_end_marker"),
    (UpFeature::Pdiu, "n4/tests/protocol/endpoints.rs", "pdis_that_name_an_endpoint_match_what_it_says"),
    (UpFeature::Udbc, "dataplane/src/tests/kept.rs", "a_far_keeps_as_many_packets_as_its_own_bar_says"),
    (UpFeature::Udbc, "n4/tests/protocol/paging.rs", "the_answer_may_change_the_bar_or_drop_what_is_kept"),
    (UpFeature::Sset, "n4/tests/protocol/sets_taken_over.rs", "one_of_the_set_takes_a_session_over"),
    (UpFeature::Mnop, "n4/tests/protocol/usage.rs", "packets_are_told_only_where_asked_for"),
    (
        UpFeature::Mpas,
        "n4/tests/protocol/sets_taken_over.rs",
        "while_the_owner_is_silent_another_of_the_set_hears_of_its_sessions",
    ),
    (
        UpFeature::Vtime,
        "n4/tests/protocol/usage_quotas.rs",
        "a_quota_is_held_only_so_long_without_packets_and_valid_only_so_long",
    ),
    (UpFeature::Resps, "n4/tests/protocol/sets.rs", "reports_go_to_who_looks_after_the_session"),
];

/// What is said where the operator has provided for it.
const PROVIDED: &[(UpFeature, &str, &str)] = &[
    (UpFeature::Ueip, "n4/tests/protocol/addresses.rs", "a_session_gets_one_address_for_all_its_rules"),
    (UpFeature::Trst, "n4/tests/protocol/forwarding.rs", "a_forwarding_policy_comes_changes_and_goes"),
    (
        UpFeature::Trst,
        "dataplane/src/tests/steered.rs",
        "packets_go_to_the_next_hop_of_their_policy_and_others_by_the_routes",
    ),
    (UpFeature::Adpdp, "n4/tests/protocol/predefined.rs", "a_pdr_stands_for_the_rules_it_activates"),
];

fn of(tables: &[&[(UpFeature, &str, &str)]]) -> UpFunctionFeatures {
    let features: Vec<UpFeature> = tables.concat().into_iter().map(|(feature, ..)| feature).collect();
    UpFunctionFeatures::of(&features)
}

fn provided() -> Config {
    let predefined = Predefined::new(vec![PredefinedRule::new("gold".to_owned())], &[]).unwrap();
    let prefix = "10.61.0.0/24".parse().unwrap();
    let pool = UePool { name: "users".to_owned(), prefix, network_instance: None };
    Config {
        predefined,
        ue_pools: vec![pool],
        forwarding_policies: vec![n4::ForwardingPolicy::of_any("mec1")],
        ..config()
    }
}

/// To who associates, and to whom we do.
#[test]
fn what_is_said_is_what_is_in_the_tables() {
    for (config, tables) in [(config(), &[ALWAYS][..]), (provided(), &[ALWAYS, PROVIDED])] {
        let mut lab = Lab::new(config.clone());
        let answer = lab.ask(SMF, &Message::node(1, setup(SMF, 5)));
        let Body::AssociationSetupResponse(response) = answer else { panic!("{answer:?}") };
        assert_eq!(response.up_function_features, Some(of(tables)));
        let mut lab = Lab::new(Config { associate: vec![at(SMF)], ..config });
        lab.pass(Duration::ZERO);
        let said = lab.sent.iter().find_map(|(_, message)| match &message.body {
            Body::AssociationSetupRequest(request) => request.up_function_features.clone(),
            _ => None,
        });
        assert_eq!(said, Some(of(tables)));
    }
}

#[test]
fn each_feature_has_its_test() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (feature, file, test) in [ALWAYS, PROVIDED].concat() {
        let text = std::fs::read_to_string(crates.join(file)).unwrap();
        assert!(text.contains(&format!("#[test]\nfn {test}() {{")), "{feature:?}: {file}::{test}");
    }
}
