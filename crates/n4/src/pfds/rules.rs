//! What PFDs of an application say, as content rules.
//!
//! Of one PFD, every kind of filter must match, and of several filters of one kind, any (TS 29.122 5.14.2.1.2); of
//! several PFDs, any. So a PFD makes a rule for each combination of a flow description, a URL and a domain name.

use super::Refused;
use super::text::{Host, Url, host, url};
use dpi::matching::{Conditions, Layer, PortRange, Rule};
use dpi::rule_file;
use pfcp::{Cause, DomainName, PfdContents};
use rules::{FlowDescription, FlowEnd};

/// The most rules of one PFD.
const COMBINATIONS: usize = 1_024;

/// The rules of one PFD, without ids; those that say more count first.
///
/// # Errors
/// What cannot be read, or is not done here.
pub(super) fn of_pfd(application: &str, contents: &[PfdContents]) -> Result<Vec<Rule>, Refused> {
    if contents.iter().any(|contents| contents.custom.is_some()) {
        return Err(Refused::unsupported("custom PFD contents".to_owned()));
    }
    let texts = |of: fn(&PfdContents) -> &Vec<Vec<u8>>| contents.iter().flat_map(of);
    let flows = texts(|contents| &contents.flow_descriptions).map(|octets| flow(octets));
    let flows = flows.collect::<Result<Vec<_>, _>>()?;
    let urls = texts(|contents| &contents.urls)
        .map(|octets| text(octets).and_then(url).ok_or_else(|| Refused::unread("URL", octets)));
    let urls = urls.collect::<Result<Vec<_>, _>>()?;
    let names = contents.iter().flat_map(|contents| &contents.domain_names).map(name);
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let kinds = [flows.is_empty(), urls.is_empty(), names.is_empty()].map(|is_empty| u32::from(!is_empty));
    let combinations = flows.len().max(1) * urls.len().max(1) * names.len().max(1);
    if kinds == [0; 3] {
        return Err(Refused::incorrect("a PFD says nothing".to_owned()));
    }
    if combinations > COMBINATIONS {
        let why = format!("a PFD would be {combinations} rules, more than {COMBINATIONS}");
        return Err(Refused { cause: Cause::NoResourcesAvailable, why });
    }
    let said_less = kinds.len() as u32 - kinds.iter().sum::<u32>();
    let rule = |when| Rule {
        id: 0,
        precedence: rule_file::PFD_RULES.start() + said_less,
        rating_group: 0,
        service: None,
        application: Some(application.into()),
        when,
    };
    Ok(combine(&flows, &urls, &names).into_iter().map(rule).collect())
}

/// Nothing, where a list is empty.
fn each<T>(list: &[T]) -> impl Iterator<Item = Option<&T>> {
    list.iter().map(Some).chain(list.is_empty().then_some(None))
}

fn combine(flows: &[Conditions], urls: &[Url], names: &[(Host, Vec<Layer>)]) -> Vec<Conditions> {
    let mut all = vec![];
    for flow in each(flows) {
        for url in each(urls) {
            all.extend(each(names).map(|name| conditions(flow, url, name)));
        }
    }
    all
}

fn conditions(flow: Option<&Conditions>, url: Option<&Url>, name: Option<&(Host, Vec<Layer>)>) -> Conditions {
    let mut when = flow.cloned().unwrap_or_default();
    match (url, name) {
        (Some(Url::Parts(host, path)), None) => {
            when.hosts.extend(host.clone());
            when.paths.extend(path.clone());
        }
        (Some(url), _) => when.url_regex = Some(url.regex()),
        (None, _) => {}
    }
    if let Some((host, layers)) = name {
        when.layers.clone_from(layers);
        match host {
            Host::Pattern(pattern) => when.hosts.push(pattern.clone()),
            Host::Regex(regex) => when.host_regex = Some(regex.clone()),
        }
    }
    when
}

/// Some senders close a text with a zero. Rules are lines, so control characters have no place in them.
pub(super) fn text(octets: &[u8]) -> Option<&str> {
    let octets = octets.strip_suffix(b"\0").unwrap_or(octets);
    std::str::from_utf8(octets).ok().filter(|text| !text.contains(char::is_control))
}

/// A description tells the protocol and the server's end. It is no matter which end the sender calls the user's: PFDs
/// say nothing of users, so of the two ends, one is any. Networks of rules have no `!`.
fn flow(octets: &[u8]) -> Result<Conditions, Refused> {
    let unread = || Refused::unread("flow description", octets);
    let description =
        text(octets).and_then(|text| text.parse::<FlowDescription>().ok()).ok_or_else(unread)?;
    let is_any =
        |end: &FlowEnd| end.ports.is_empty() && end.addresses.is_none_or(|all| all.prefix.prefix_len() == 0);
    let server = match (is_any(&description.remote), is_any(&description.user)) {
        (_, true) => description.remote,
        (true, false) => description.user,
        (false, false) => return Err(unread()),
    };
    if server.addresses.is_some_and(|addresses| addresses.inverted) {
        return Err(unread());
    }
    Ok(Conditions {
        networks: server.addresses.into_iter().map(|addresses| addresses.prefix.trunc()).collect(),
        ports: server.ports.iter().map(|range| PortRange { first: range.first, last: range.last }).collect(),
        protocol: description.protocol,
        ..Conditions::default()
    })
}

/// Domain names are looked for where the protocol says (TS 29.122 5.14.2.2.4): TLS_SNI in server names of TLS, which QUIC
/// has, too; DNS_QNAME in lookups and their answers, which are that application's, and not what follows them. Where no
/// protocol is told, a host is looked for wherever one is named, but in lookups.
///
/// Names of certificates (TLS_SAN, TLS_SCN) are refused: servers send them encrypted since TLS 1.3 (RFC 8446 4.4.2), and
/// in QUIC, so that a rule of these would mostly miss what it is for.
fn name(domain: &DomainName) -> Result<(Host, Vec<Layer>), Refused> {
    let unread = || Refused::unread("domain name", &domain.name);
    let host = text(&domain.name).and_then(host).ok_or_else(unread)?;
    let Some(protocol) = domain.protocol.as_deref() else { return Ok((host, vec![])) };
    let is = |name: &[u8], number| {
        protocol.eq_ignore_ascii_case(name) || protocol == [number] || protocol == [0, 0, 0, number]
    };
    // By name, or as the number of its place among the names.
    match (is(b"DNS_QNAME", 0), is(b"TLS_SNI", 1)) {
        (true, _) => Ok((host, vec![Layer::Dns])),
        (_, true) => Ok((host, vec![Layer::Tls, Layer::Quic])),
        _ => {
            Err(Refused::unsupported(format!("domain name protocol {:?}", String::from_utf8_lossy(protocol))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(flows: &[&str], urls: &[&str], names: &[(&str, Option<&str>)]) -> PfdContents {
        let octets = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        let name = |(name, protocol): &(&str, Option<&str>)| DomainName {
            name: name.as_bytes().to_vec(),
            protocol: protocol.map(|protocol| protocol.as_bytes().to_vec()),
        };
        PfdContents {
            flow_descriptions: octets(flows),
            urls: octets(urls),
            domain_names: names.iter().map(name).collect(),
            custom: None,
        }
    }

    fn lines(contents: &[PfdContents]) -> Vec<String> {
        of_pfd("app", contents).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_kind_must_match_and_of_a_kind_any() {
        let flows =
            ["permit out 6 from 192.0.2.7/24 443 to assigned", "permit in ip from any to 2001:db8::1 80-81"];
        let pfd = [
            contents(&flows, &[], &[("a.example", None)]),
            contents(&[], &[], &[("b.example", Some("tls_sni"))]),
        ];
        let rule =
            |rest: &str| format!("id=0 precedence=4000000001 rating-group=0 application=\"app\" {rest}");
        assert_eq!(
            lines(&pfd),
            [
                "host=a.example network=192.0.2.0/24 port=443 protocol=tcp",
                "host=b.example network=192.0.2.0/24 port=443 protocol=tcp layer=tls,quic",
                "host=a.example network=2001:db8::1/128 port=80-81",
                "host=b.example network=2001:db8::1/128 port=80-81 layer=tls,quic",
            ]
            .map(rule)
        );
    }

    #[test]
    fn a_domain_name_protocol_says_where_the_name_is_looked_for() {
        let line = |protocol| lines(&[contents(&[], &[], &[("a.example", protocol)])]).remove(0);
        for protocol in ["DNS_QNAME", "dns_qname", "\0", "\0\0\0\0"] {
            assert!(line(Some(protocol)).ends_with(" host=a.example layer=dns"), "{protocol}");
        }
        for protocol in ["TLS_SNI", "\u{1}", "\0\0\0\u{1}"] {
            assert!(line(Some(protocol)).ends_with(" host=a.example layer=tls,quic"), "{protocol}");
        }
        assert!(line(None).ends_with(" host=a.example"));
    }

    #[test]
    fn a_url_beside_a_name_is_an_expression() {
        let pfd = contents(&[], &["http://a.example/b"], &[(".example", None)]);
        assert!(lines(&[pfd])[0].ends_with(r#"host=.example url-regex="^a\.example/b.*""#));
        let pfd = contents(&[], &["http://a.example/b", "https?://b/"], &[]);
        let lines = lines(&[pfd]);
        assert!(lines[0].ends_with(" host=a.example path=/b*"), "{lines:?}");
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let refused = |pfd: PfdContents| of_pfd("app", &[pfd]).unwrap_err().cause;
        let incorrect = Cause::MandatoryIeIncorrect;
        assert_eq!(refused(contents(&[], &[], &[])), incorrect);
        assert_eq!(refused(contents(&["permit out ip from"], &[], &[])), incorrect);
        assert_eq!(refused(contents(&["permit out ip from 192.0.2.1 to 192.0.2.2"], &[], &[])), incorrect);
        assert_eq!(refused(contents(&["permit out ip from !192.0.2.1 to assigned"], &[], &[])), incorrect);
        assert_eq!(refused(contents(&[], &["a b"], &[])), incorrect);
        assert_eq!(refused(contents(&[], &["a(\nid=1"], &[])), incorrect);
        assert_eq!(refused(contents(&[], &[], &[("", None)])), incorrect);
        let other = Cause::ServiceNotSupported;
        for protocol in ["TLS_SAN", "TLS_SCN", "\u{2}", "\u{3}", "HTTP_HOST", ""] {
            assert_eq!(refused(contents(&[], &[], &[("a.example", Some(protocol))])), other, "{protocol}");
        }
        assert_eq!(refused(PfdContents { custom: Some(vec![1]), ..PfdContents::default() }), other);
        let urls = vec!["a.example/b"; 33];
        let names = vec![("a.example", None); 32];
        assert_eq!(refused(contents(&[], &urls, &names)), Cause::NoResourcesAvailable);
    }
}
