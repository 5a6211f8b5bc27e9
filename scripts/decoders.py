#!/usr/bin/env python3
"""Reads what our programs sent in tests with decoders of others, and holds what they see against each other.

`decoders.py FOLDER` reads all captures of a folder (`crates/wire/pfcp/tests/common/record.rs` writes them). What reads what:

- tshark: no frame malformed, nothing worth an expert's remark, and the elements by number and length
- scapy (contrib.pfcp): the same elements, no octet left over
- pycrate (TS29244_PFCP), where it is installed: the same elements, each where its tables have it, no mandatory one missing

What they are known to be wrong about stands in the tables below, with the reason; what is not needed any more must go.
"""
import collections
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Groups that the page of information elements names otherwise than by their number.
GROUPS = {78: "Usage Report", 79: "Usage Report", 80: "Usage Report"}
GROUPS |= dict.fromkeys((102, 187, 315), "User Plane Path Failure, Recovery or Peer UP Restart Report")

# Whose messages must say all that the page promises; the others are the emulator's.
NODE = bytes([10, 40, 0, 2])

MESSAGES = {
    1: "Heartbeat Request", 2: "Heartbeat Response", 3: "PFD Management Request", 4: "PFD Management Response",
    5: "Association Setup Request", 6: "Association Setup Response", 7: "Association Update Request",
    8: "Association Update Response", 9: "Association Release Request", 10: "Association Release Response",
    11: "Version Not Supported Response", 12: "Node Report Request", 13: "Node Report Response",
    14: "Session Set Deletion Request", 15: "Session Set Deletion Response", 16: "Session Set Modification Request",
    17: "Session Set Modification Response", 50: "Session Establishment Request",
    51: "Session Establishment Response", 52: "Session Modification Request", 53: "Session Modification Response",
    54: "Session Deletion Request", 55: "Session Deletion Response", 56: "Session Report Request",
    57: "Session Report Response",
}

# By whose messages they are made about: (decoder, what it says, why it is wrong), each a regular expression for the whole remark.
KNOWN = {
    "the node": [
        ("scapy", "message 17 is Raw", "Session Set Modification is of release 16, its tables of release 15"),
        ("scapy", "(161|184|187|233|315) is not implemented", "of release 16 and 17: flags of reports and answers, paths, pools"),
        ("scapy", "43 has octets left over", "it knows the UP functions of the first two octets"),
        ("scapy", "63 has octets left over", "it knows the triggers of the first two octets"),
        ("scapy", "66 has octets left over", "numbers of packets (MNOP) are of release 16"),
        ("scapy", "14[45] has octets left over", "behind the addresses are the lengths of two tags since release 16"),
        ("pycrate", "message 17 is not known", "it lacks Session Set Modification"),
        ("pycrate", "message [567] has 116", "release 16 dropped the element; control planes that choose TEIDs look for it"),
        ("pycrate", "message 12 has 315", "Peer UP Restart Report is of release 17"),
        ("pycrate", "79 has 156", "times of events, lost with the session where no request may follow the answer (without ARDR)"),
        ("pycrate", "79 has 125", "a report that followed the answer to a query is told again as it was, with the deletion"),
        ("pycrate", "258 cannot be read", "its IP Version has nine bits in an octet"),
        ("pycrate", "80 (lacks (45|250|260)|has (63|81|104))", "its table of mandatory elements there is that of 83"),
    ],
    # It speaks as control planes in use do, faults included (crates/ran/src/smf/dialect).
    "the emulator": [
        ("scapy", "(37|44|89) has octets left over", "triggers, actions and features that release 16 added in further octets"),
        ("scapy", "(181|186|257) is not implemented", "of release 16: validity of quotas, restoration, S-NSSAI"),
        ("pycrate", "95 cannot be read", "its Outer Header Removal wants the second octet, which is optional"),
        ("pycrate", "message 5[02] has 10[89]", "having given up 95, it takes what stands behind for the message's own"),
        ("pycrate", "1 lacks 29", "Open5GS's SGW-C gives PDRs no precedence"),
        ("pycrate", "(10 has 4|4 has 49)", "OMEC's SMF says Forwarding Parameters for what it updates of them"),
        ("pycrate", "message 54 has 57", "OMEC's SMF says its F-SEID once more when it deletes a session"),
    ],
}

# Of these groups they do not see what is inside, as they do not implement them.
OPAQUE = {"scapy": {187, 233, 315}, "pycrate": {315}}

# What the tests are known to make the node (or the emulator) say: kinds of messages, and elements by the group they stand in.
LEAST = {"the node": (16, 100), "the emulator": (7, 90)}


class Page:
    """docs/ie-support.md: which numbers are groups, and what we say we send."""

    def __init__(self):
        self.groups, self.rows, self.sent, self.names, group = dict(GROUPS), set(), set(), {}, None
        self.headings = set()
        for line in (ROOT / "docs/ie-support.md").read_text().splitlines():
            if line.startswith("## "):
                group = line[3:]
                self.headings.add(group)
            row = re.match(r"\| (\d+) \| (.*?) \| (.*?) \|", line)
            if row and group == "All numbers":
                self.names[int(row[1])] = row[2]
                if "a group above" in row[3]:
                    self.groups.setdefault(int(row[1]), row[2])
            elif row:
                self.rows.add((group, int(row[1])))
                if row[3] == "sent":
                    self.sent.add((group, int(row[1])))
        # Of requests that either side sends the page tells what is taken; in ours stands what our response says.
        ours = {number for other, number in self.rows if other == "Association Setup Response"}
        self.rows |= {("Association Setup Request", number) for number in ours}

    def message(self, kind, whose):
        """The heading of a message: what is taken and what the node says are told apart where it does both."""
        ours = f"{MESSAGES[kind]} (ours)"
        return ours if whose == "the node" and ours in self.headings else MESSAGES[kind]


class Findings:
    """Remarks by whose message they are about and who makes them, each with the first such message."""

    def __init__(self):
        self.first, self.count = {}, collections.Counter()

    def add(self, whose, decoder, remark, message):
        self.first.setdefault((whose, decoder, remark), message)
        self.count[whose, decoder, remark] += 1

    def judge(self, installed):
        """How many remarks are nobody else's fault, or known and never made."""
        table = [(whose, *row) for whose, rows in KNOWN.items() for row in rows if row[0] in installed]
        unused, faults = set(table), 0
        for (whose, decoder, remark), message in self.first.items():
            known = {row for row in table if row[:2] == (whose, decoder) and re.fullmatch(row[2], remark)}
            unused -= known
            if not known:
                faults += 1
                count = self.count[whose, decoder, remark]
                print(f"decoders: {decoder} of {whose}: {remark} ({count} times), as in {message.hex()}")
        for whose, decoder, remark, _ in unused:
            print(f"decoders: {decoder} has not said of {whose}: {remark}")
        return faults + len(unused)


def messages(folder):
    """Every distinct message: octets of PFCP, whoever sent it, and whatever its sequence number."""
    found = {}
    for file in sorted(folder.glob("*.pcap")):
        rest = file.read_bytes()[24:]
        while rest:
            (length,) = struct.unpack_from("<I", rest, 8)
            packet, rest = rest[16 : 16 + length], rest[16 + length :]
            message = packet[28:]
            at = 12 if message[0] & 1 else 4
            found.setdefault(message[:at] + message[at + 3 :], packet)
    return [(packet[28:], packet) for packet in found.values()]


def by_tshark(packets, work):
    """Of each message its elements, numbers and lengths in the order they stand, and the remarks about it."""
    file = pathlib.Path(work) / "all.pcap"
    with file.open("wb") as out:
        out.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 101))
        for packet in packets:
            out.write(struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet)
    fields = ["frame.protocols", "pfcp.msg_type", "pfcp.ie_type", "pfcp.ie_len", "_ws.expert.message", "_ws.malformed"]
    command = ["tshark", "-r", str(file), "-T", "fields", "-E", "aggregator=|"]
    lines = subprocess.run(
        command + [word for field in fields for word in ("-e", field)], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert len(lines) == len(packets), (len(lines), len(packets))
    for line in lines:
        protocols, kind, types, lengths, experts, malformed = line.split("\t")
        remarks = [remark for remark in experts.split("|") + [malformed and "malformed"] if remark]
        if not protocols.endswith(":pfcp") or not kind:
            remarks.append(f"not PFCP but {protocols}")
        numbers = [[int(number) for number in column.split("|") if number] for column in (types, lengths)]
        yield list(zip(*numbers, strict=True)), remarks


class Scapy:
    name = "scapy"

    def __init__(self):
        import logging

        # It warns of names in one piece where it expects labels.
        logging.getLogger("scapy").setLevel(logging.ERROR)
        from scapy.contrib import pfcp

        self.pfcp = pfcp

    def read(self, message):
        packet = self.pfcp.PFCP(message)
        elements, remarks = [], []
        body = packet.payload
        if not hasattr(body, "IE_list"):
            return None, [f"message {message[1]} is {type(body).__name__}"] if len(body) else []
        self.walk(body.IE_list, elements, remarks)
        if len(body.payload):
            remarks.append(f"{len(body.payload)} octets left over")
        return elements, remarks

    def walk(self, found, elements, remarks):
        for element in found:
            if not hasattr(element, "ietype"):
                remarks.append(f"no element but {type(element).__name__}")
                continue
            elements.append((element.ietype, element.length))
            if isinstance(element, self.pfcp.IE_NotImplemented):
                remarks.append(f"{element.ietype} is not implemented")
            elif getattr(element, "extra_data", b""):
                remarks.append(f"{element.ietype} has octets left over")
            self.walk(getattr(element, "IE_list", None) or [], elements, remarks)


def listed(numbers):
    """A table of pycrate's; some of one number are written without the comma that would make them a tuple."""
    return {numbers} if isinstance(numbers, int) else set(numbers)


class Pycrate:
    name = "pycrate"

    def __init__(self):
        from pycrate_mobile import TS29244_PFCP

        self.pfcp = TS29244_PFCP
        # Else a group that lacks something is given up on.
        TS29244_PFCP.PFCPIEs.VERIF_MAND = False

    def read(self, message):
        read, error = self.pfcp.parse_PFCP(message)
        if read is None:
            return None, [f"message {message[1]} is not known" if error == 3 else f"message {message[1]}: error {error}"]
        elements, remarks = [], []
        self.walk(read[1], f"message {message[1]}", elements, remarks)
        return elements, remarks

    def walk(self, group, name, elements, remarks):
        numbers, wanted, may_be = {element[0].get_val() for element in group}, listed(group.MAND), listed(group.OPT)
        remarks += [f"{name} lacks {number}" for number in wanted - numbers]
        remarks += [f"{name} has {number}" for number in numbers - wanted - may_be]
        for element in group:
            number, length, value = element[0].get_val(), element[1].get_val(), element[3]
            elements.append((number, length))
            if isinstance(value, self.pfcp.PFCPIEs):
                self.walk(value, str(number), elements, remarks)
            elif number in self.pfcp.PFCPIELUT and value is element._data_raw:
                remarks.append(f"{number} cannot be read")


def decoders():
    """Those that are installed."""
    found = []
    for decoder in (Scapy, Pycrate):
        try:
            found.append(decoder())
        except ImportError:
            print(f"decoders: {decoder.name} is not installed")
    return found


def tree(elements, groups):
    """Pairs of group and element, walked by length: `None` is the message itself."""
    ends, at = [(None, sys.maxsize)], 0
    for number, length in elements:
        while at >= ends[-1][1]:
            ends.pop()
        yield ends[-1][0], number
        at += 4
        if number in groups:
            ends.append((number, at + length))
        else:
            at += length


def within(elements, opaque):
    """What one sees who takes some groups for octets."""
    seen, hidden = [], 0
    for number, length in elements:
        if hidden:
            hidden -= 4 + length
            continue
        seen.append((number, length))
        hidden = length if number in opaque else 0
    return seen


def who(packet):
    return "the node" if packet[12:16] == NODE else "the emulator"


def main(folder):
    page, findings = Page(), Findings()
    kinds, seen = ({whose: set() for whose in KNOWN} for _ in range(2))
    everything = messages(folder)
    with tempfile.TemporaryDirectory() as work:
        by_first = list(by_tshark([packet for _, packet in everything], work))
    others = decoders()
    for (message, packet), (elements, remarks) in zip(everything, by_first, strict=True):
        whose = who(packet)
        for remark in remarks:
            findings.add(whose, "tshark", remark, message)
        kinds[whose].add(message[1])
        for group, number in tree(elements, page.groups):
            seen[whose].add((page.message(message[1], whose) if group is None else page.groups[group], number))
        for decoder in others:
            read, remarks = decoder.read(message)
            for remark in remarks:
                findings.add(whose, decoder.name, remark, message)
            if read is not None and read != within(elements, OPAQUE.get(decoder.name, set())):
                findings.add(whose, decoder.name, "sees other elements", message)
    faults = findings.judge({decoder.name for decoder in others})
    for group, number in sorted(page.sent - seen["the node"]):
        faults += 1
        print(f"decoders: nobody has seen {number} ({page.names[number]}) in {group}")
    for group, number in sorted(seen["the node"] - page.rows):
        faults += 1
        print(f"decoders: {number} ({page.names[number]}) in {group} is said and not in docs/ie-support.md")
    for whose, (least_kinds, least_elements) in LEAST.items():
        count = sum(who(packet) == whose for _, packet in everything)
        found = len(kinds[whose]), len(seen[whose])
        print(f"decoders: {count} messages of {whose}, of {found[0]} kinds, with {found[1]} elements by group")
        faults += found[0] < least_kinds or found[1] < least_elements
    return faults


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])) > 0)
