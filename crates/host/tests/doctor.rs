//! What the doctor says of known servers. `BLESS=1` writes the golden files anew.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests speak plainly")]

mod made;

use anchorline_host::{
    Colours, CorePower, Facts, Finding, Idle, Node, NodePort, Placement, Root, State, Translation, examine,
    explain, explained, identifiers, table,
};
use made::{Made, compare, servers};
use std::os::unix::fs::FileExt;

fn doctor(name: &str, made: &Made, node: Option<&Node>) -> Vec<Finding> {
    let findings = examine(&made.facts(), node);
    compare(&format!("doctor-{name}"), &table(&findings, Colours::No));
    findings
}

fn of<'a>(findings: &'a [Finding], id: &str) -> Vec<&'a Finding> {
    findings.iter().filter(|finding| finding.id == id).collect()
}

#[test]
fn two_xeons_with_e810_and_x710() {
    let findings = doctor("xeon", &servers::xeon(), Some(&servers::node()));
    assert_eq!(of(&findings, "nic.link")[0].state, State::Warning);
    let packages: Vec<State> = of(&findings, "nic.package").iter().map(|finding| finding.state).collect();
    assert_eq!(packages, [State::Warning, State::Good]);
    // It is the right card: nobody has to buy another.
    assert!(of(&findings, "nic.steering")[0].act.starts_with("as nic.package says"));
    let placement = of(&findings, "node.placement");
    assert!(placement.iter().any(|finding| finding.found.contains("node 1, the worker on CPU 8 on node 0")));
    let memory: Vec<State> =
        of(&findings, "node.packet-memory").iter().map(|finding| finding.state).collect();
    assert_eq!(memory, [State::Good, State::Problem], "each node has pages of its own");
    assert_eq!(
        of(&findings, "node.ports").iter().filter(|finding| finding.state == State::Problem).count(),
        2
    );
}

/// A bit that is 1 switches one off; each maker has a register of its own.
#[test]
fn prefetchers_are_read_of_the_makers_register() {
    let told = |made: &Made, register: Option<(u64, u64)>| {
        if let Some((number, value)) = register {
            let path = made.place("/dev/cpu/0/msr");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let file = std::fs::File::create(path).unwrap();
            file.write_all_at(&value.to_le_bytes(), number).unwrap();
        }
        of(&examine(&made.facts(), None), "bios.prefetch")[0].found.clone()
    };
    let (intel, amd) = (servers::xeon(), servers::epyc());
    assert_eq!(
        told(&intel, None),
        "not available here, because /dev/cpu/0/msr does not exist (modprobe msr)"
    );
    let all = "on: L2 stream, L2 adjacent line, L1 stream, L1 by instruction";
    assert_eq!(told(&intel, Some((0x1a4, 0))), all);
    let without = "on: L2 stream, L1 stream, L1 by instruction; off: L2 adjacent line";
    assert_eq!(told(&intel, Some((0x1a4, 0b10))), without);
    assert_eq!(
        told(&amd, Some((0xc000_0108, 0b10_1111))),
        "off: L1 stream, L1 stride, L1 region, L2 stream, L2 up and down"
    );
    // A processor without the register: the kernel gives an error, a file its end.
    let absent = told(&amd, Some((0, 0)));
    assert!(absent.contains("MSR 0xc0000108 cannot be read, which this processor may not have"), "{absent}");
    let cloud = told(&servers::cloud(), Some((0x1a4, 0)));
    assert!(cloud.starts_with("not available here, because this is a virtual machine"), "{cloud}");
}

/// What only programs of the machine itself say is judged as they say it.
#[test]
fn core_power_is_as_the_tool_says() {
    let told = |core_power| {
        let mut facts = servers::xeon().facts();
        facts.power.sst.core_power = core_power;
        let findings = examine(&facts, None);
        let [found] = of(&findings, "power.sst-cp")[..] else { panic!("{findings:?}") };
        (found.state, found.found.clone())
    };
    let power = |supported, enabled| CorePower { supported, enabled, priority: Some("ordered".to_owned()) };
    let (state, found) = told(Some(Ok(power(true, true))));
    assert!(state == State::Good && found.starts_with("on, ordered; "), "{found}");
    assert_eq!(told(Some(Ok(power(true, false)))), (State::Advice, "off".to_owned()));
    assert_eq!(told(Some(Ok(power(false, false)))).0, State::NotAvailable);
    let (state, found) = told(Some(Err("the tool says: Must run as root".to_owned())));
    assert!(state == State::NotAvailable && found.ends_with("(the tool says: Must run as root)"), "{found}");
    assert_eq!(told(None).0, State::Advice, "a copy of a machine cannot be asked");
}

/// Nothing but a measurement says how a virtual machine's memory lies.
#[test]
fn huge_pages_are_worth_what_was_measured_of_them() {
    let state = |made: &Made, far_ns| {
        let mut facts = made.facts();
        facts.memory.translation = Some(Translation { near_ns: 5.0, far_ns });
        let findings = examine(&facts, None);
        let [found] = of(&findings, "memory.translation")[..] else { panic!("{findings:?}") };
        (found.state, found.found.clone())
    };
    let (virtual_machine, own) = (servers::cloud(), servers::epyc());
    let text = "huge pages are translated as such: a read takes 5.0 ns, of lines in 4 KiB each 6.5 ns";
    assert_eq!(state(&virtual_machine, 6.5), (State::Good, text.to_owned()));
    assert_eq!(state(&virtual_machine, 16.0).0, State::Warning);
    assert_eq!([6.5, 16.0].map(|far_ns| state(&own, far_ns).0), [State::Good, State::Advice]);
}

/// The kernel makes groups of devices in the unsafe mode of VFIO, too.
#[test]
fn groups_without_an_iommu_are_none() {
    let made = servers::epyc();
    let of_both = || {
        let findings = examine(&made.facts(), None);
        ["kernel.iommu", "nic.vfio"]
            .map(|id| (of(&findings, id)[0].state, of(&findings, id)[0].found.clone()))
    };
    let told = |text: &str| text.to_owned();
    made.file("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y");
    made.file("/sys/kernel/iommu_groups/1/name", "vfio-noiommu");
    let one = (State::Good, told("1 groups, the kernel's own devices passed through"));
    assert_eq!(of_both(), [one, (State::Good, told("vfio-pci, with an IOMMU"))]);
    made.file("/sys/kernel/iommu_groups/0/name", "vfio-noiommu");
    let unsafe_mode = (State::Advice, told("vfio-pci without an IOMMU (unsafe mode)"));
    assert_eq!(of_both(), [(State::Warning, told("off")), unsafe_mode]);
}

/// The data plane loads one file, as it is; what looks like it is said with where it must be.
#[test]
fn a_profile_is_good_where_the_data_plane_loads_it_from() {
    const PROFILE: &str = "/lib/firmware/intel/i40e/ddp/gtp.pkgo";
    let told = |name: Option<&str>| {
        let made = Made::new();
        made.nic("0000:af:00.0", ("0x8086", "0x1572"), ("vfio-pci", 0));
        name.map(|name| made.file(name, "profile"));
        let findings = examine(&made.facts(), None);
        let steering = of(&findings, "nic.steering")[0].state;
        let [package] = &of(&findings, "nic.package")[..] else { panic!("{findings:?}") };
        (package.state, steering, format!("{} {:?}", package.found, package.act))
    };
    let (state, steering, found) = told(Some(PROFILE));
    assert!(state == State::Good && steering == State::Good && found.contains(PROFILE), "{found}");
    for other in [
        "/lib/firmware/intel/i40e/ddp/gtp.pkgo.zst",
        "/lib/firmware/intel/i40e/ddp/gtp.pkg",
        "/lib/firmware/updates/intel/i40e/ddp/gtp.pkgo",
        "/lib/firmware/intel/i40e/GTPv1.zip",
    ] {
        let (state, steering, found) = told(Some(other));
        assert_eq!((state, steering), (State::Warning, State::Advice), "{other}");
        assert!(found.contains(&format!("{other} is not loaded")) && found.contains(PROFILE), "{found}");
    }
    let (state, _, found) = told(None);
    assert!(state == State::Warning && found.contains(&format!("there is no {PROFILE}")), "{found}");
}

/// The workers' CPUs, else the isolated ones, else all; what is so of some of them alone is told with whose it is.
#[test]
fn those_cpus_are_to_be_fast_that_workers_have() {
    const OF_ALL: &str = "performance on CPUs 1,8, powersave on CPUs 0,2-7,9-63";
    let node = |workers: &[usize]| Node { workers: workers.to_vec(), ..servers::node() };
    let made = servers::epyc();
    made.of_cpus(&(0..64).collect::<Vec<_>>(), "cpufreq/scaling_governor", "powersave");
    made.of_cpus(&[1, 8], "cpufreq/scaling_governor", "performance");
    made.of_cpus(&[1, 8], "cpuidle/state2/disable", "1");
    let told = |node: Option<&Node>| {
        let findings = examine(&made.facts(), node);
        ["power.governor", "power.sleep"].map(|id| {
            let found = of(&findings, id)[0];
            (found.state, found.found.clone())
        })
    };
    let expect = |node: Option<&Node>, states: [State; 2], [governors, sleeps]: [&str; 2]| {
        let expected = [format!("{governors} (acpi-cpufreq)"), format!("intel_idle of {sleeps}")];
        let [governor, sleep] = told(node);
        assert_eq!([governor.0, sleep.0], states);
        assert_eq!([governor.1, sleep.1], expected);
    };
    let sleeps = "CPUs 1,8: POLL 0 us, C1 1 us";
    expect(Some(&node(&[1, 8])), [State::Good; 2], ["performance on CPUs 1,8", sleeps]);
    let (badly, sleeps) = ([State::Warning, State::Advice], "POLL 0 us, C1 1 us, C2 400 us on CPUs 2-7");
    let isolated = ["performance on CPUs 1,8, powersave on CPUs 2-7", &format!("CPUs 1-8: {sleeps}")];
    expect(None, badly, isolated);
    expect(Some(&node(&[])), badly, isolated);
    made.file("/sys/devices/system/cpu/isolated", "");
    expect(None, badly, [OF_ALL, "CPUs 0-63: POLL 0 us, C1 1 us, C2 400 us on CPUs 0,2-7"]);
}

/// DPDK and the kernel look for it before `ice.pkg`, each for the card that has this serial number.
#[test]
fn a_package_for_one_card_goes_first() {
    const FOLDER: &str = "/lib/firmware/intel/ice/ddp";
    const OS: &str = "\0ICE OS Default Package\0";
    const COMMS: &str = "\0ICE COMMS Package\0";
    let told = |files: &[(&str, &str)]| {
        let made = Made::new();
        made.nic("0000:3b:00.0", ("0x8086", "0x1592"), ("vfio-pci", 0));
        for (name, text) in files {
            made.file(&format!("{FOLDER}/{name}"), text);
        }
        let findings = examine(&made.facts(), None);
        let [package] = &of(&findings, "nic.package")[..] else { panic!("{findings:?}") };
        (package.state, package.found.replace("0000:3b:00.0 (ice): ", "").replace(FOLDER, ""))
    };
    let said = |state, text: &str| (state, text.to_owned());
    let (one, other) = ("ice-b49691ffff123456.pkg", "ice-b49691ffff654321.pkg");
    let if_this =
        "/ice-b49691ffff123456.pkg is the comms package, if the serial number in its name is this card's";
    assert_eq!(told(&[("ice.pkg", OS), (one, COMMS)]), said(State::Good, if_this));
    let unless = "/ice.pkg is not the comms package: no GTP-U, unless a file beside it has this card's serial number in its \
                  name";
    assert_eq!(told(&[("ice.pkg", OS), (one, COMMS), (other, OS)]), said(State::Warning, unless));
    let none = "no ice.pkg under : safe mode, one queue";
    assert_eq!(told(&[("ice-1.3.30.0.pkg", COMMS)]), said(State::Warning, none));
    assert_eq!(told(&[("ice.pkg", COMMS)]), said(State::Good, "/ice.pkg is the comms package"));
}

/// One driver runs virtual functions of both series; its rules are those of one.
#[test]
fn a_function_of_a_700_series_is_not_told_that_it_should_hash() {
    let told = |device: &str| {
        let made = servers::xeon();
        made.nic("0000:af:02.0", ("0x8086", device), ("vfio-pci", 1));
        let mut node = servers::node();
        node.ports[0].device = "0000:af:02.0".to_owned();
        let findings = examine(&made.facts(), Some(&node));
        let steering = of(&findings, "nic.steering");
        let steering = steering.iter().find(|one| one.found.starts_with("0000:af:02.0 (iavf)")).unwrap();
        (steering.found.clone(), steering.act.clone(), of(&findings, "node.steering")[0].state)
    };
    for device in ["0x154c", "0x1571", "0x37cd"] {
        let (found, act, of_port) = told(device);
        assert!(found.ends_with("packets are handed over by software"), "{device}: {found}");
        assert!(act.ends_with("hash = \"inner\""), "{device}: {act}");
        assert_eq!(of_port, State::Advice, "{device}");
    }
    let (found, _, of_port) = told("0x1889");
    assert!(found.contains("should hash inside GTP-U") && of_port == State::Good, "{found}");
}

/// A socket in two nodes, and a limit of sleep states on the command line.
#[test]
fn what_the_bios_and_the_command_line_changed_is_seen() {
    let made = servers::epyc();
    made.file("/proc/cmdline", "idle=poll processor.max_cstate=1");
    made.file("/sys/devices/system/node/node1/cpulist", "16-31,48-63");
    let findings = examine(&made.facts(), None);
    assert_eq!(of(&findings, "bios.sub-numa")[0].state, State::Advice);
    assert!(of(&findings, "power.sleep")[0].found.ends_with("; processor.max_cstate=1; idle=poll"));
}

/// What the doctor says of idle workers, without the first word on CPUs.
fn of_idle(made: &Made, node: Node) -> Vec<(State, String)> {
    let findings = examine(&made.facts(), Some(&node));
    of(&findings, "node.idle").iter().skip(1).map(|one| (one.state, one.found.clone())).collect()
}

#[test]
fn what_idle_workers_cannot_do_here_is_told() {
    let node = |idle, ports| {
        let mut node = Node { idle, ..servers::node() };
        node.ports.truncate(ports);
        node
    };
    let with = |flags: &str| {
        let made = servers::xeon();
        made.cpuinfo("GenuineIntel", "a Xeon", flags);
        made
    };
    for (idle, ports, flags, state, expected) in [
        (Idle::Pause, 2, "sse4_2 monitorx", State::NotAvailable, "shows no WAITPKG: with idle = \"pause\""),
        (Idle::Pause, 2, "waitpkg", State::Good, "(WAITPKG)"),
        (Idle::Monitor, 1, "sse4_2 rtm", State::NotAvailable, "shows no WAITPKG: with idle = \"monitor\""),
        (Idle::Monitor, 2, "waitpkg", State::NotAvailable, "each worker receives from 2 ports"),
        (Idle::Monitor, 2, "waitpkg rtm", State::Good, "ctl status says"),
        (Idle::Monitor, 1, "waitpkg", State::Good, "ctl status says"),
    ] {
        let told = of_idle(&with(flags), node(idle, ports));
        let [(found, text)] = &told[..] else { panic!("{idle:?} {flags}: {told:?}") };
        assert!(*found == state && text.contains(expected), "{idle:?} {flags}: {told:?}");
        assert_eq!(text.starts_with("not available here, because "), state == State::NotAvailable, "{text}");
    }
    assert_eq!(of_idle(&with("waitpkg rtm"), node(Idle::Poll, 2)), []);
}

#[test]
fn whose_frequency_can_go_down_is_told_worker_by_worker() {
    let made = servers::xeon();
    for (cpu, together) in [(8, "8"), (20, "20 44")] {
        made.of_cpus(&[cpu], "cpufreq/affected_cpus", together);
        made.of_cpus(&[cpu], "cpufreq/scaling_min_freq", "800000");
        made.of_cpus(&[cpu], "cpufreq/scaling_max_freq", "3500000");
    }
    let told = of_idle(&made, Node { idle: Idle::Scale, ..servers::node() });
    let [(State::Good, down), (State::NotAvailable, not)] = &told[..] else { panic!("{told:?}") };
    assert_eq!(down, "idle = \"scale\": CPU 8 goes from 3500 down to 800 MHz and up again");
    assert!(not.contains("because CPU 20 has its frequency together with CPUs 44"), "{not}");
    let told = of_idle(&servers::cloud(), Node { idle: Idle::Scale, ..servers::node() });
    assert!(told[0].1.contains("because the kernel does not scale the frequency of CPU 8"), "{told:?}");
    let anywhere = Node { idle: Idle::Scale, workers: vec![], ..servers::node() };
    assert!(of_idle(&made, anywhere)[0].1.contains("because workers may run on any CPU"));
}

/// DPDK of this release does not know that instruction.
#[test]
fn what_dpdk_does_not_use_is_not_told_as_good() {
    let findings = examine(&servers::epyc().facts(), None);
    let [monitor] = &of(&findings, "cpu.monitor")[..] else { panic!() };
    assert_eq!(monitor.state, State::NotAvailable, "{monitor:?}");
}

/// Packets of a card belong on its node, and pages that the data plane makes for itself cannot be there.
#[test]
fn packet_memory_of_another_node_is_no_use() {
    let findings = |node: &Node| examine(&servers::xeon().facts(), Some(node));
    let mut node = Node { required: false, memory_mb: 2_048, ..servers::node() };
    node.ports.retain(|port| port.name == "n6");
    let memory =
        |node: &Node| of(&findings(node), "node.packet-memory").into_iter().cloned().collect::<Vec<_>>();
    let [short] = &memory(&node)[..] else { panic!() };
    assert_eq!(short.state, State::Warning, "{short:?}");
    assert!(short.found.contains("1024 MiB of huge pages are free on node 1, where 2048 of"), "{short:?}");
    node.memory_mb = 1_024;
    assert_eq!(memory(&node)[0].state, State::Good);
    // On node 0 it can make them.
    node = Node { required: false, memory_mb: 16_384, ..servers::node() };
    node.ports.retain(|port| port.name == "n3");
    assert_eq!(memory(&node)[0].state, State::Advice);
}

#[test]
fn parts_of_a_node_have_their_places() {
    let placement = Placement::new(&servers::xeon().facts(), &servers::node());
    let expected = Placement {
        // There is no such card as the third port's.
        devices: vec![Some(0), Some(1), None],
        workers: vec![Some(0), Some(1)],
        packets: vec![Some(0), Some(1), None],
        memory_mb: vec![(0, 5_462), (1, 2_730)],
    };
    assert_eq!(placement, expected);
    // A device in software is where the workers are.
    let port = NodePort { name: "n3".to_owned(), device: "net_tap0,iface=t0".to_owned() };
    let node = Node { ports: vec![port], workers: vec![20, 60], worker_count: 2, ..servers::node() };
    let placement = Placement::new(&servers::xeon().facts(), &node);
    assert_eq!((placement.of_workers(), &placement.memory_mb[..]), (Some(1), &[(1, 8_192)][..]));
    // On one node there is nothing to be asked for.
    let alone = Placement::new(&servers::epyc().facts(), &node);
    assert_eq!((alone.packets, alone.memory_mb), (vec![None], vec![]));
}

/// That a virtual machine shows no sibling does not say that there is none.
#[test]
fn who_shares_a_core_is_not_guessed() {
    let told = |hypervisor: &str, threads: &str| {
        let made = Made::new();
        made.cpuinfo("AuthenticAMD", "an EPYC", hypervisor).file("/sys/devices/system/cpu/online", "0-1");
        made.file("/sys/devices/system/cpu/smt/control", threads);
        let node = Node { workers: vec![1], ..servers::node() };
        let findings = examine(&made.facts(), Some(&node));
        (of(&findings, "node.siblings")[0].state, of(&findings, "node.siblings")[0].found.clone())
    };
    let hidden = "not available here, because a virtual machine is not told what shares the core of CPU 1";
    assert_eq!(told("hypervisor", "notsupported"), (State::NotAvailable, hidden.to_owned()));
    let alone = (State::Good, "CPU 1 has its core to itself".to_owned());
    assert_eq!((told("hypervisor", "off"), told("svm", "notsupported")), (alone.clone(), alone));
}

/// Ports of the kernel and of none.
#[test]
fn interfaces_of_ports_are_looked_for() {
    let port = |device: &str| NodePort { name: "n3".to_owned(), device: device.to_owned() };
    let devices = [
        "net_af_xdp0,iface=enp193s0f0np0",
        "net_af_packet0,iface=n3",
        "net_tap0,iface=tap0",
        "net_null0",
        "virtio_user0,path=/dev/vhost-net,iface=tap1",
    ];
    let node =
        Node { ports: devices.map(port).to_vec(), worker_count: 2, workers: vec![0, 99], ..Node::default() };
    let made = servers::epyc();
    made.folder("/sys/class/net/enp193s0f0np0");
    let findings = examine(&made.facts(), Some(&node));
    let states = |id: &str| of(&findings, id).iter().map(|finding| finding.state).collect::<Vec<_>>();
    assert_eq!(states("node.ports"), [State::Good, State::Problem, State::Good, State::Good, State::Good]);
    assert_eq!(states("node.workers"), [State::Warning, State::Problem]);
}

#[test]
fn an_epyc_with_mlx5_is_fine() {
    let findings = doctor("epyc", &servers::epyc(), None);
    assert!(
        findings.iter().all(|finding| finding.state <= State::NotAvailable),
        "warnings on a good machine"
    );
}

#[test]
fn a_virtual_machine_of_a_cloud() {
    let findings = doctor("cloud", &servers::cloud(), None);
    for id in ["kernel.clock", "system.quota"] {
        assert_eq!(of(&findings, id)[0].state, State::Warning, "{id}");
    }
}

#[test]
fn a_container_that_is_shown_nothing_gets_answers_all_the_same() {
    let findings = doctor("container", &servers::container(), Some(&servers::node()));
    let silent = findings.iter().filter(|finding| finding.state == State::NotAvailable);
    assert!(silent.clone().count() > 15);
    assert!(silent.clone().all(|finding| finding.found.starts_with("not available here, because ")
        || finding.found.contains(": not available here, because ")));
}

#[test]
fn a_small_virtual_machine_without_dmi() {
    let findings = doctor("microvm", &Made::of_file("microvm.tree"), None);
    assert_eq!(of(&findings, "nic.driver").len(), 1);
    assert_eq!(of(&findings, "cpu.flags")[0].state, State::Good);
}

/// Every check says something of every server, and every explanation can be had.
#[test]
fn every_check_is_explained_everywhere() {
    for made in [servers::xeon(), servers::epyc(), servers::cloud(), servers::container()] {
        let facts = made.facts();
        for id in identifiers() {
            let findings = explain(id, &facts, Some(&servers::node())).unwrap();
            let text = explained(&findings, Colours::No);
            assert!(text.starts_with(id) && text.contains("means  ") && text.contains("worth  "), "{text}");
        }
        assert!(explain("no.such-check", &facts, None).is_none());
    }
}

/// Whatever this machine is, it can be examined.
#[test]
fn this_very_machine_is_examined() {
    let facts = Facts::read(&Root::system());
    let findings = examine(&facts, None);
    assert!(findings.len() > 20);
    serde_json::to_string(&(facts, findings)).unwrap();
}

#[test]
fn colours_are_for_terminals() {
    let findings = examine(&servers::container().facts(), None);
    assert!(table(&findings, Colours::Yes).contains("\x1b[90mnot here\x1b[0m"));
    assert!(!table(&findings, Colours::No).contains('\x1b'));
}
