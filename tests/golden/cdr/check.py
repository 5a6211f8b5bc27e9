#!/usr/bin/env python3
"""Reads the CDR files of this folder with decoders of others, and holds what they say against the JSON Lines.

Needs pycrate and asn1tools (pip), tshark and openssl; `check.py FILE...` checks other files, of any formats of the
same records. What reads what:

- the file header and the CDR headers: this script, after TS 32.297 6.1
- PGWRecord: pycrate's compiled module GPRSChargingDataTypes of TS 32.298, and tshark's dissector of GPRS CDRs, inside
  a GTP' Data Record Transfer (TS 32.295)
- CHFRecord: asn1tools and pycrate, each compiling chf.asn1, strictly
- all: `openssl asn1parse`
"""
import importlib
import ipaddress
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import asn1tools
from pycrate_asn1c.asnproc import PycrateGenerator, compile_text, generate_modules
from pycrate_asn1dir import CDR

HERE = pathlib.Path(__file__).parent

# What a condition of JSON Lines is in TS 32.298: in ServiceConditionChange, and as an SMFTrigger.
CONDITIONS = {
    "qos_change": ("qoSChange", "qoSChange"),
    "serving_node_change": ("sGSNChange", "servingNodeChange"),
    "tariff_switch": ("tariffTimeSwitch", "tariffTimeChange"),
    "service_stop": ("serviceStop", "terminationOfServiceDataFlow"),
    "session_end": ("pDPContextRelease", "endOfPDUSession"),
    "time_limit": ("timeLimit", "pDUSessionExpiryDataTimeLimit"),
    "volume_limit": ("volumeLimit", "pDUSessionExpiryDataVolumeLimit"),
    "max_changes": ("recordClosure", "pDUSessionExpiryChangeChargingConditions"),
    "abnormal_release": ("pDPContextRelease", "abnormalRelease"),
    "management_intervention": ("recordClosure", "managementIntervention"),
    "configuration_change": ("configurationChange", "managementIntervention"),
    "rule_change": ("configurationChange", "terminationOfServiceDataFlow"),
}


def cdrs(octets):
    """Header values and CDRs of a file."""
    length, header, high, low = struct.unpack_from(">IIBB", octets)
    count, sequence, reason = struct.unpack_from(">IIB", octets, 18)
    lost, filter_length = struct.unpack_from(">BH", octets, 47)
    (private_length,) = struct.unpack_from(">H", octets, 50 + filter_length)
    extensions = octets[52 + filter_length + private_length : header]
    assert length == len(octets), (length, len(octets))
    assert (high >> 5, low >> 5, len(extensions)) == (7, 7, 2)
    assert header == 54 and reason in range(6)
    rest, found = octets[header:], []
    while rest:
        size, release, form = struct.unpack_from(">HBB", rest)
        assert release >> 5 == 7 and form >> 5 == 1, "release beyond 9, BER"
        found.append((form & 31, rest[5 : 5 + size]))
        rest = rest[5 + size :]
    assert count == len(found), (count, len(found))
    return {"sequence": sequence, "reason": reason, "lost": lost}, found


def summed(containers):
    return sorted(containers, key=str)


def of_json(record):
    one = [
        (it["rating_group"], it["service_id"], it["uplink_bytes"], it["downlink_bytes"], it["time_s"])
        for it in record["containers"]
    ]
    return record["serial"] & 0xFFFFFFFF, record["cause_number"], record["duration_s"], summed(one)


def address(choice):
    """Of an `IPAddress` as pycrate has it."""
    kind, value = choice
    while not isinstance(value, bytes):
        kind, value = value
    return str(ipaddress.ip_address(value))


def nodes_of_pgw(octets):
    """Serving nodes of a record, and of each container."""
    record = CDR.GPRSChargingDataTypes.GPRSRecord
    record.from_ber(octets)
    _, value = record.get_val()
    assert len(value["servingNodeAddress"]) == len(value["servingNodeType"])
    containers = value.get("listOfServiceData", [])
    of_containers = [it["servingNodeAddress"] for it in containers if "servingNodeAddress" in it]
    return list(map(address, value["servingNodeAddress"])), list(map(address, of_containers))


def nodes_of_json(record):
    of_containers = [it["serving_nodes"][0] for it in record["containers"] if it["serving_nodes"]]
    return record["serving_nodes"], of_containers


def conditions_of_json(record, place):
    """Why each container was closed, as the format says it that is at that place of CONDITIONS; by its number."""
    names = {it["sequence"]: [CONDITIONS[name][place] for name in it["conditions"]] for it in record["containers"]}
    return {number: sorted(set(all_of_it)) for number, all_of_it in names.items()}


def conditions_of_pgw(octets):
    record = CDR.GPRSChargingDataTypes.GPRSRecord
    record.from_ber(octets)
    bits = CDR.GPRSChargingDataTypes.ServiceConditionChange._cont
    containers = record.get_val()[1].get("listOfServiceData", [])

    def names(value, length):
        return sorted(name for name, bit in bits.items() if bit < length and value >> (length - 1 - bit) & 1)

    return {it["localSequenceNumber"]: names(*it["serviceConditionChange"]) for it in containers}


def conditions_of_chf(record, numbers):
    names = {number: name for name, number in numbers.items()}
    containers = [it for group in record.get("listOfMultipleUnitUsage", []) for it in group["usedUnitContainers"]]
    return {it["localSequenceNumber"]: sorted(names[number] for _, number in it["triggers"]) for it in containers}


def of_pgw(octets):
    record = CDR.GPRSChargingDataTypes.GPRSRecord
    record.from_ber(octets)
    kind, value = record.get_val()
    assert kind == "pGWRecord" and value["recordType"] == 85
    one = [
        (it["ratingGroup"], it.get("serviceIdentifier"), it["datavolumeFBCUplink"], it["datavolumeFBCDownlink"], it.get("timeUsage"))
        for it in value.get("listOfServiceData", [])
    ]
    return value["localSequenceNumber"], value["causeForRecClosing"], value["duration"], summed(one)


def of_chf(record):
    one = [
        (group["ratingGroup"], it.get("serviceIdentifier"), it["dataVolumeUplink"], it["dataVolumeDownlink"], it.get("time"))
        for group in record.get("listOfMultipleUnitUsage", [])
        for it in group["usedUnitContainers"]
    ]
    return record["localRecordSequenceNumber"], record["causeForRecClosing"], record["duration"], summed(one)


def of_openssl(octets):
    parsed = subprocess.run(
        ["openssl", "asn1parse", "-inform", "DER"], input=octets, capture_output=True, check=False
    )
    assert parsed.returncode == 0 and b"rror" not in parsed.stdout + parsed.stderr, parsed.stderr


def of_tshark(all_octets):
    """Each record in a GTP' Data Record Transfer Request; tshark must not complain."""
    pcap = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    for at, octets in enumerate(all_octets):
        packet = struct.pack(">BBH", 1, 1, 0x6000 | 0x0F00) + struct.pack(">H", len(octets)) + octets
        # Number of records, format (BER), version of the format: application 1, release 9, version 0.
        payload = struct.pack(">BB", 126, 1) + struct.pack(">BH", 252, len(packet)) + packet
        gtp = struct.pack(">BBHH", 0x4E, 240, len(payload), at) + payload
        udp = struct.pack(">HHHH", 3386, 3386, 8 + len(gtp), 0) + gtp
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), at, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])) + udp
        frame = bytes(12) + b"\x08\x00" + ip
        pcap += struct.pack("<IIII", at, 0, len(frame), len(frame)) + frame
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(pcap)
        file.flush()
        run = ["tshark", "-r", file.name, "-V", "-o", "ip.check_checksum:FALSE"]
        return subprocess.run(run, capture_output=True, text=True, check=True).stdout


def pycrate_compiled(text):
    """CHFRecord of the module in `text`, and the numbers of its triggers."""
    with tempfile.TemporaryDirectory() as folder:
        compile_text(text)
        generate_modules(PycrateGenerator, f"{folder}/chf_subset.py")
        sys.path.insert(0, folder)
        module = importlib.import_module("chf_subset")
    return module.CHFSubset.CHFRecord, module.CHFSubset.SMFTrigger._cont


def main():
    files = [pathlib.Path(name) for name in sys.argv[1:]] or sorted(HERE.glob("*_-_*"))
    told, nodes, conditions = {}, {}, {}
    for path in files:
        if path.suffix == ".jsonl":
            for record in map(json.loads, path.read_text().splitlines()):
                seen = of_json(record)
                told[seen[0]], nodes[seen[0]] = seen, nodes_of_json(record)
                conditions[seen[0]] = [conditions_of_json(record, place) for place in (0, 1)]
    text = (HERE / "chf.asn1").read_text()
    strict = asn1tools.compile_string(text, "ber")
    compiled, triggers = pycrate_compiled(text)
    for path in files:
        if path.suffix == ".jsonl":
            continue
        header, found = cdrs(path.read_bytes())
        for number, octets in found:
            of_openssl(octets)
            if number == 7:
                seen = of_pgw(octets)
                why, place = conditions_of_pgw(octets), 0
                if told:
                    assert nodes[seen[0]] == nodes_of_pgw(octets), (nodes[seen[0]], nodes_of_pgw(octets))
            else:
                assert number == 20, number
                kind, record = strict.decode("CHFRecord", octets)
                seen = of_chf(record)
                why, place = conditions_of_chf(record, triggers), 1
                compiled.from_ber(octets)
                assert of_chf(compiled.get_val()[1]) == seen
                # What is in the record and not in chf.asn1 would be lost on the way back.
                assert len(strict.encode("CHFRecord", (kind, record))) == len(octets)
            if told:
                assert told[seen[0]] == seen, (told.get(seen[0]), seen)
                assert conditions[seen[0]][place] == why, (conditions[seen[0]][place], why)
        if found and found[0][0] == 7:
            shown = of_tshark([octets for _, octets in found if len(octets) < 60_000])
            assert "Malformed" not in shown and "BER Error" not in shown, shown[-3000:]
            assert shown.count("pGWRecord") >= 1 and "listOfServiceData" in shown, shown[-2000:]
        print(f"{path.name}: {len(found)} records, {header}")
    print(f"{len(told)} records of JSON Lines agree" if told else "no JSON Lines to compare with")


if __name__ == "__main__":
    main()
