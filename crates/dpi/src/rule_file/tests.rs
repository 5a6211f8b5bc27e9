use super::*;
use crate::matching::{Facts, Problem};
use proptest::prelude::*;

fn mistakes(text: &str) -> String {
    check_lines(text).unwrap_err().to_string()
}

const SAMPLE: &str = r#"
# the documentation's
id=1 precedence=100 rating-group=10 host=.video.example
id=2 precedence=50  rating-group=0  service=7 url=www.operator.example/account/*   # free
id=3 precedence=200 rating-group=20 network=198.51.100.0/24,2001:db8:1::/48 port=5000-5999,443 protocol=udp
id=4 precedence=300 rating-group=30 layer=quic,tls host-regex="^cdn[0-9]+\.a{1,3}\."
id=5 precedence=999 rating-group=99 any
"#;

#[test]
fn the_sample_of_the_documentation_is_read_and_means_what_it_says() {
    let documented = include_str!("mod.rs");
    for line in SAMPLE.lines().filter(|line| line.starts_with("id=") && !line.contains('#')) {
        assert!(documented.contains(line), "{line}");
    }
    let file = read_lines(SAMPLE).unwrap();
    assert_eq!(read_lines(&format!("\u{feff}{}", SAMPLE.trim_start())).unwrap().rules(), file.rules());
    assert_eq!(file.lines, [3, 4, 5, 6, 7]);
    let classifier = file.compile().unwrap();
    let found = |facts: Facts<'_>| {
        classifier.classify(&facts).map(|found| (found.id, found.rating_group, found.service))
    };
    let host = |host: &'static str| Facts { host: Some(host.as_bytes()), ..Facts::default() };
    assert_eq!(found(host("a.video.example")), Some((1, 10, None)));
    let account = Facts { path: Some(b"/account/1"), ..host("www.operator.example") };
    assert_eq!(found(account), Some((2, 0, Some(7))));
    let udp = Facts {
        server: "2001:db8:1::7".parse().unwrap(),
        server_port: 5_500,
        protocol: 17,
        ..Facts::default()
    };
    assert_eq!(found(udp), Some((3, 20, None)));
    assert_eq!(found(Facts { protocol: 6, ..udp }), Some((5, 99, None)));
    let cdn = Facts { layer: Some(crate::matching::Layer::Tls), ..host("CDN7.aa.example") };
    assert_eq!(found(cdn), Some((4, 30, None)));
}

#[test]
fn every_mistake_is_told_with_its_line() {
    for (line, told) in [
        ("id=x any", "id \"x\": a number from 0 to 4294967295"),
        ("id=1 id=2 any", "\"id\" stands twice"),
        ("id=1 any host=a", "\"any\" stands with conditions"),
        ("id=1 host=a..b", "host \"a..b\": a label of the name is empty"),
        ("id=1 network=192.0.2.1/24", "network \"192.0.2.1/24\": bits beyond the prefix are set"),
        ("id=1 port=9-8", "port \"9-8\": a port, or two such as 5000-5999, the lower first"),
        ("id=1 dscp=64", "dscp \"64\": a number from 0 to 63"),
        ("id=1 layer=ftp", "layer \"ftp\": http, http2, tls, quic, dns, stun or rtp"),
        ("id=1 host", "\"host\" needs a value: host=..."),
        ("id=1 host=", "\"host\" needs a value: host=..."),
        ("id=1 url=a.example", "url \"a.example\": a host, then a path: a.example/b*"),
        ("id=1 url=/b", "url \"/b\": a URL begins with a host; path= is for paths of any host"),
        ("id=1 path=/a#b", "path \"/a#b\": a path ends before #, which no server looks behind"),
        (
            "id=1 path=/a/../b",
            "path \"/a/../b\": segments of one dot or two are resolved before: write what is left of it",
        ),
        (
            "id=1 path=/a/%2e%2E/*",
            "path \"/a/%2e%2E/*\": segments of one dot or two are resolved before: write what is left of it",
        ),
        (
            "id=1 url=a.example/./b",
            "url \"a.example/./b\": segments of one dot or two are resolved before: write what is left of it",
        ),
        ("id=1 host=a.example.", "host \"a.example.\": a name stands without its last dot"),
        (
            "id=1 host=bücher.example",
            "host \"bücher.example\": 'ü' is in no host name as clients say it; names of other letters are written with \
             xn-- (punycode)",
        ),
        ("id=1 host-regex=(", "regular expression: unclosed group"),
        (
            "id=1 host-regex=^Cdn[0-9]",
            "regular expression: no host has the letter C, as hosts are in lower case; write it in lower case",
        ),
        ("id=1 alpn=h2,,h3", "alpn \"\": a name of up to 255 visible letters, such as h2, http/1.1 or dot"),
        (
            "id=1 ech=",
            "ech \"\": no value in a line; in a table yes, 1 or its own name, else the cell is empty",
        ),
    ] {
        assert_eq!(mistakes(&format!("{line} precedence=1 rating-group=1")), format!("line 1: {told}"));
    }
    for (line, told) in [
        ("precedence=1 rating-group=1 any", "line 1: \"id\" is missing"),
        ("id=1 precedence=1 rating-group=1", "line 1: no condition; a rule for all flows says \"any\""),
        ("id=1 host-regex=\"a", "line 1: quotes must be around a whole value"),
        ("id=1 host-regex=\"a\"b", "line 1: quotes must be around a whole value"),
    ] {
        assert_eq!(mistakes(line), told);
    }
    assert!(mistakes("colour=red").starts_with("line 1: \"colour\" is no key; keys are id, precedence"));
}

#[test]
fn a_url_may_be_as_browsers_show_it() {
    let read = |url: &str| read_lines(&format!("id=1 precedence=1 rating-group=1 {url}")).unwrap();
    let plain = read("host=a.example path=/b*");
    for url in ["a.example/b*", "http://a.example/b*", "HTTPS://A.example/b*"] {
        assert_eq!(read(&format!("url={url}")), plain, "{url}");
    }
    assert_eq!(read("url=http://[2001:db8::1]/b"), read("host=2001:db8::1 path=/b"));
    let refused = |condition: &str| mistakes(&format!("id=1 precedence=1 rating-group=1 {condition}"));
    let port = "a host stands without its port; say port=... beside it";
    assert_eq!(refused("host=a.example:443"), format!("line 1: host \"a.example:443\": {port}"));
    let url = "http://a.example:8080/b";
    assert_eq!(refused(&format!("url={url}")), format!("line 1: url \"{url}\": {port}"));
    let told = "it begins with http:// or https://, or with a host";
    assert_eq!(refused("url=ftp://a.example/b"), format!("line 1: url \"ftp://a.example/b\": {told}"));
}

/// What is wrong with a rule of such conditions.
fn refused(conditions: &str) -> String {
    let line = format!("id=1 precedence=1 rating-group=1 {conditions}");
    check_lines(&line).map_or_else(|mistakes| mistakes.to_string(), |_| String::new())
}

/// Each of these rules is refused, as its conditions `one` and `other` contradict each other.
fn contradict(all: &[(&str, &str, &str, &str)]) {
    for (conditions, one, other, why) in all {
        let told = format!("line 1: {one} and {other} contradict each other: {why}");
        assert_eq!(refused(conditions), told, "{conditions}");
    }
}

#[test]
fn what_no_flow_can_be_is_refused_with_what_contradicts_what() {
    let seen = "only layer=http shows what is asked for";
    contradict(&[
        ("path=/b layer=tls", "a path", "layer=tls", seen),
        ("url=a.example/b layer=tls,quic", "a path", "layer=tls,quic", seen),
        ("url-regex=^a layer=dns", "url-regex", "layer=dns", seen),
        ("protocol=udp layer=http", "protocol=udp", "layer=http", "http is over tcp"),
        ("protocol=tcp layer=quic,rtp", "protocol=tcp", "layer=quic,rtp", "quic or rtp is over udp"),
        ("protocol=132 layer=tls,quic", "protocol=sctp", "layer=tls,quic", "tls or quic is over tcp or udp"),
        ("protocol=icmp port=80", "protocol=icmp", "port", "only tcp, udp and sctp have ports"),
        ("protocol=udp path=/b", "protocol=udp", "a path", "requests in the clear are over tcp"),
    ]);
    for right in
        ["path=/b layer=tls,http", "protocol=tcp layer=dns", "path=/b protocol=tcp", "port=5 protocol=sctp"]
    {
        assert_eq!(refused(right), "", "{right}");
    }
    assert_eq!(refused("path=/b layer=tls,htp").lines().count(), 1, "who knows what it should be");
    // Packet flow descriptions are as their sender wants them.
    assert!(read_lines("id=1 precedence=1 rating-group=1 path=/b layer=tls").is_ok());
}

#[test]
fn what_has_no_hello_is_not_asked_for_what_one_says() {
    let behind = "only layer=tls and layer=quic have a ClientHello";
    let over = "a ClientHello is over tcp or udp";
    let clear = "a request in the clear has no ClientHello";
    contradict(&[
        ("ech layer=http", "ech", "layer=http", behind),
        ("ech protocol=icmp", "protocol=icmp", "ech", over),
        ("ech path=/b", "a path", "ech", clear),
        ("alpn=h2,h3 layer=http,dns", "alpn", "layer=http,dns", behind),
        ("alpn=h2 protocol=icmp", "protocol=icmp", "alpn", over),
        ("url=a.example/b alpn=http/1.1", "a path", "alpn", clear),
    ]);
    for right in ["protocol=udp layer=tls,quic ech", "protocol=tcp layer=tls,http alpn=dot ech"] {
        assert_eq!(refused(right), "", "{right}");
    }
}

/// Whoever has put right what is told has a file that is right.
#[test]
fn all_mistakes_are_told_at_once() {
    let text = "id=1 precedence=1 rating-group=1 any\n\
                id=1 precedence=x rating-group=1 host=a..b dscp=64 host-regex=\"^cdn[0-9+\"\n\
                id=2 precedence=4000000000 rating-group=1 url-regex=(?=a)\n\
                rating-group=1 path=/a\n\
                precedence=2 hst=a.example\n\
                id=4000000001 precedence=3 rating-group=y service=z any\n";
    let told = mistakes(text);
    let expected = [
        (2, "precedence \"x\": a number"),
        (2, "host \"a..b\": a label"),
        (2, "dscp \"64\": a number"),
        (2, "id 1 is that of an earlier rule"),
        (2, "regular expression: "),
        (3, "precedence \"4000000000\": 4000000000 to 4000999999 are for rules made of PFDs"),
        (3, "regular expression: "),
        (4, "\"id\" is missing"),
        (4, "\"precedence\" is missing"),
        (5, "\"hst\" is no key"),
        (5, "\"id\" is missing"),
        (5, "\"rating-group\" is missing"),
        (6, "rating-group \"y\": a number"),
        (6, "service \"z\": a number"),
        (6, "id \"4000000001\": 4000000000 to 4000999999 are for rules made of PFDs"),
    ];
    assert_eq!(told.lines().count(), expected.len(), "{told}");
    for (told, (line, begins)) in told.lines().zip(expected) {
        assert!(told.starts_with(&format!("line {line}: {begins}")), "{told}");
    }
    // An id that a line should have and one that another has are not the same.
    let text = format!(
        "any\nid={} precedence=1 rating-group=1 any\nid=0 precedence=1 rating-group=1 any\n",
        u32::MAX
    );
    assert!(mistakes(&text).lines().all(|told| told.starts_with("line 1: ")), "{}", mistakes(&text));
}

#[test]
fn one_wrong_line_loads_nothing_and_all_wrong_lines_are_told() {
    let good = "id=1 precedence=1 rating-group=1 any\n";
    let text = format!("{good}id=2 precedence=1 any\n\n\nid=3 rating-group=1 any\n");
    assert!(read_lines(&text).is_err());
    let told = mistakes(&text);
    assert_eq!(told, "line 2: \"rating-group\" is missing\nline 5: \"precedence\" is missing");
    // What only all rules together show is told by line, too.
    assert_eq!(mistakes(&format!("\n{good}\n{good}")), "line 4: id 1 is that of an earlier rule");
    let many = "x\n".repeat(1_000);
    assert_eq!(mistakes(&many).lines().count(), Mistakes::MAX + 1);
}

#[test]
fn what_is_for_rules_of_pfds_is_no_files() {
    let text = "id=3999999999 precedence=4001000000 rating-group=1 any\n\
                id=4000000000 precedence=1 rating-group=1 any\n\
                id=2 precedence=4000999999 rating-group=1 any\n";
    let told = mistakes(text);
    let why = "4000000000 to 4000999999 are for rules made of PFDs";
    assert_eq!(told, format!("line 2: id \"4000000000\": {why}\nline 3: precedence \"4000999999\": {why}"));
}

#[test]
fn a_table_has_the_same_keys() {
    let table = "\u{feff}ID,Precedence,Rating_Group,Host,Path,Port,Any,host-regex,ECH,ALPN\r\n\
                 1,100,10,a.example *.b.example,/x* *.mp4,80 443,,,yes,h2 h3\r\n\
                 ,,,,,,,,,\r\n\
                 2,200,20,,,,yes,,,\r\n\r\n\
                 3,300,30,,,,,\"^\"\"a, b\"\"\",,\r\n";
    let file = read_csv(table).unwrap();
    let lines = "id=1 precedence=100 rating-group=10 host=a.example,*.b.example path=/x* path=*.mp4 port=80,443 ech alpn=h2,h3\n\n\
                 id=2 precedence=200 rating-group=20 any\n\
                 id=3 precedence=300 rating-group=30 host-regex=\"^\"\"a, b\"\"\"\n";
    assert_eq!(file.rules(), read_lines(lines).unwrap().rules());
    assert_eq!(file.lines, [2, 4, 6]);
    let told = |table: &str| check_csv(table).unwrap_err().to_string();
    let first = "line 1: \"precedence\" is missing\nline 1: \"rating-group\" is missing\n";
    // Of each row what is wrong with it is told, not what no row can have.
    let wrong = told("id,colour,host,dscp\n1,red,,\n\n2\n,blue,a..b,64\n");
    let (colour, others) = wrong.split_once('\n').unwrap();
    assert!(colour.starts_with("line 1: \"colour\" is no key"), "{colour}");
    assert_eq!(
        others,
        format!(
            "{first}line 4: 1 cells, and the first row has 4\nline 5: host \"a..b\": a label of the name is empty\n\
             line 5: dscp \"64\": a number from 0 to 63\nline 5: \"id\" is missing"
        )
    );
    assert!(read_csv("").unwrap().rules().is_empty());
    let cut = "id,precedence,rating-group,host\n1,1,1,a.example\n2,1,1,\"b.example\n";
    assert_eq!(told(cut), "line 3: a quote that is never closed");
    assert!(read_csv(&cut.replace("b.example\n", "b.example\"\n")).is_ok());
    let separated = "line 1: columns are separated by commas, not by";
    assert_eq!(told("id;precedence;host\n1;2;a,b\n"), format!("{separated} semicolons"));
    assert_eq!(told("id\tprecedence\thost\n1\t2\ta\n"), format!("{separated} tabs"));
}

/// As in a line, where it stands in quotes.
#[test]
fn a_table_has_applications_with_spaces_and_says_what_a_flag_is() {
    let table = "id,precedence,rating group,application,any\n1,1,1,Video on demand,any\n";
    let line = "id=1 precedence=1 rating-group=1 application=\"Video on demand\" any";
    assert_eq!(read_csv(table).unwrap().rules(), read_lines(line).unwrap().rules());
    let told = |cells: &str| {
        let table = format!("id,precedence,rating-group,any,port\n1,{cells}\n");
        check_csv(&table).unwrap_err().to_string()
    };
    let why = "no value in a line; in a table yes, 1 or its own name, else the cell is empty";
    assert_eq!(told("1,1,no,"), format!("line 2: any \"no\": {why}"));
    assert_eq!(told("1 2,1,yes,"), "line 2: precedence \"1 2\": a number from 0 to 4294967295");
}

#[test]
fn an_expression_beyond_bounds_is_refused_by_line() {
    let text = "# one\nid=1 precedence=1 rating-group=1 host-regex=(a|b)*a(a|b){20}\n";
    let refused = read_lines(text).unwrap().compile().unwrap_err();
    assert_eq!(refused.list().len(), 1);
    let Mistake { line: 2, what: What::Rule(Problem::Regex(why)) } = &refused.list()[0] else {
        panic!("{refused}")
    };
    assert!(why.contains("256 KiB"), "{why}");
}

/// Hundreds of lines that each say so help nobody.
#[test]
fn what_all_expressions_take_together_is_told_once() {
    let line = |id: u32| {
        let regex = format!("a{id}(c|d)*c(c|d){{9}}");
        format!("id={id} precedence={id} rating-group=1 host-regex={regex} url-regex={regex}\n")
    };
    let told = mistakes(&(1..=1_000).map(line).collect::<String>());
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(
        told.contains("take more than 64 MiB, so no more are looked at; host= and path= take little"),
        "{told}"
    );
}

proptest! {
    #[test]
    fn rules_read_as_they_are_written(
        numbers in any::<[u32; 3]>(),
        service in proptest::option::of(any::<u32>()),
        application in proptest::option::of(r#"[a-z" ]{1,8}"#),
        texts in (
            proptest::collection::vec(r"(\*\.|\.)?[a-z]{1,5}\*?[a-z]{0,2}(\.[a-z]{1,3}){0,2}", 0..3),
            proptest::collection::vec(r"[/*][a-z/,=?]{0,8}\*?", 0..3),
            proptest::option::of(r#"[a-z" ]{1,8}"#),
        ),
        protocol in proptest::option::of(any::<u8>()),
        ports in proptest::collection::vec(any::<(u16, u16)>(), 0..3),
        networks in proptest::collection::vec((any::<u32>(), 0..=32_u8), 0..3),
        alpn in proptest::collection::vec("[!#-+\\--~]{1,9}", 0..3),
    ) {
        let (hosts, paths, host_regex) = texts;
        let port = |(one, other): (u16, u16)| crate::matching::PortRange { first: one.min(other), last: one.max(other) };
        let network = |(address, length): (u32, u8)| {
            ipnet::IpNet::new(std::net::Ipv4Addr::from_bits(address).into(), length).unwrap().trunc()
        };
        let when = crate::matching::Conditions {
            hosts: hosts.iter().filter_map(|host| host.parse().ok()).collect(),
            paths: paths.iter().map(|path| path.parse().unwrap()).collect(),
            host_regex,
            protocol,
            ports: ports.into_iter().map(port).collect(),
            networks: networks.into_iter().map(network).collect(),
            alpn: alpn.into_iter().map(Box::from).collect(),
            ..crate::matching::Conditions::default()
        };
        let [id, precedence, rating_group] = numbers;
        let application = application.map(Box::from);
        let rule = Rule { id, precedence, rating_group, service, application, when };
        let file = read_lines(&rule.to_string()).unwrap();
        prop_assert_eq!(file.rules(), std::slice::from_ref(&rule));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(id=|host=|any|\"|,|\n|[ -~]){0,30}") {
        let _ = read_lines(&text).and_then(|file| file.compile());
        let _ = read_csv(&text).and_then(|file| file.compile());
    }
}
