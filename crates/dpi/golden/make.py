#!/usr/bin/env python3
"""Writes clients.pcap: what real programs send first, over the loopback of a network namespace of its own.

Run as root, with the Python packages aioquic and dnspython, and QUICGO naming the program that quicgo.go builds
(`go mod init quicgo && go mod tidy && go build`). Needs curl, wget, node, java, openssl, tcpdump and ethtool. Every
program has a server port of its own; tests/captures.rs names host and path of each.
"""

import asyncio, os, socket, ssl, subprocess, sys, tempfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
if "INSIDE" not in os.environ:
    os.environ["INSIDE"] = "1"
    os.execvp("unshare", ["unshare", "-nm", sys.executable, os.path.abspath(__file__)])

import dns.message, dns.rrset, dns.flags
from aioquic.asyncio import connect, serve
from aioquic.quic.configuration import QuicConfiguration

QUICGO = os.environ["QUICGO"]
WORK = tempfile.mkdtemp()
CERT, KEY = f"{WORK}/cert.pem", f"{WORK}/key.pem"


def run(*command, check=True, **more):
    print("$", " ".join(command), flush=True)
    return subprocess.run(command, check=check, timeout=20, stdout=subprocess.DEVNULL, **more)


def answer(connection):
    with connection:
        connection.settimeout(1)
        try:
            data = connection.recv(65536)
            while data and b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        except OSError:
            pass


def listen(port, context=None):
    server = socket.create_server(("127.0.0.1", port))

    def loop():
        while True:
            connection, _ = server.accept()
            try:
                if context:
                    connection = context.wrap_socket(connection, server_side=True)
                threading.Thread(target=answer, args=(connection,), daemon=True).start()
            except OSError:
                connection.close()

    threading.Thread(target=loop, daemon=True).start()


def resolve():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))

    def loop():
        while True:
            query, client = server.recvfrom(4096)
            query = dns.message.from_wire(query)
            reply = dns.message.make_response(query)
            reply.flags |= dns.flags.RA
            name, kind = query.question[0].name.to_text(), query.question[0].rdtype
            alias = "edge.video-cdn.example."
            reply.answer.append(dns.rrset.from_text(name, 60, "IN", "CNAME", alias))
            if kind == 1:
                reply.answer.append(dns.rrset.from_text(alias, 30, "IN", "A", "198.51.100.7", "198.51.100.8"))
            elif kind == 28:
                reply.answer.append(dns.rrset.from_text(alias, 30, "IN", "AAAA", "2001:db8::7"))
            server.sendto(reply.to_wire(), client)

    threading.Thread(target=loop, daemon=True).start()


async def aioquic(host, port):
    server = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
    server.load_cert_chain(CERT, KEY)
    await serve("127.0.0.1", port, configuration=server)
    client = QuicConfiguration(alpn_protocols=["h3"], server_name=host, verify_mode=ssl.CERT_NONE)
    async with connect("127.0.0.1", port, configuration=client) as connection:
        await connection.wait_connected()


JAVA = """
import java.net.*; import java.net.http.*; import javax.net.ssl.*; import java.security.cert.*;
public class Get {
  public static void main(String[] a) throws Exception {
    SSLContext c = SSLContext.getInstance("TLS");
    c.init(null, new TrustManager[]{ new X509ExtendedTrustManager() {
      public void checkClientTrusted(X509Certificate[] x, String s) {}
      public void checkServerTrusted(X509Certificate[] x, String s) {}
      public void checkClientTrusted(X509Certificate[] x, String s, Socket k) {}
      public void checkServerTrusted(X509Certificate[] x, String s, Socket k) {}
      public void checkClientTrusted(X509Certificate[] x, String s, SSLEngine k) {}
      public void checkServerTrusted(X509Certificate[] x, String s, SSLEngine k) {}
      public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; } } }, null);
    System.out.println(HttpClient.newBuilder().sslContext(c).build()
      .send(HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString()));
  } }
"""
NODE = "require(%r).get({host:'127.0.0.1',port:%d,servername:%r,headers:{Host:%r},path:%r,rejectUnauthorized:false}," \
       "r=>r.resume()).on('error',console.error)"


def curl(host, port, path, *options, scheme="http"):
    run("curl", "-sk", "-m", "5", "--resolve", f"{host}:{port}:127.0.0.1", *options, f"{scheme}://{host}:{port}{path}",
        check=False)


def clients():
    curl("shop.example", 8001, "/cart?id=7")
    run("wget", "-qO-", "--header", "Host: files.example", "http://127.0.0.1:8002/iso/1", check=False)
    run("node", "-e", NODE % ("http", 8003, "", "api.example", "/v1/items"), check=False)
    run("java", f"{WORK}/Get.java", "http://java.example:8004/j", check=False)
    run("curl", "-s", "-m", "5", "-x", "http://127.0.0.1:8005", "http://media.example/clip.mp4", check=False)
    run("curl", "-s", "-m", "2", "-x", "http://127.0.0.1:8006", "https://bank.example/", check=False)
    curl("h2c.example", 8007, "/x", "--http2-prior-knowledge")
    # The Host field comes first, the cookie fills two segments more.
    curl("long.example", 8008, "/l", "-H", "Cookie: " + "c" * 3_000)
    # The target alone fills the first segment.
    curl("far.example", 8009, "/" + "p" * 2_000)
    curl("web.example", 8443, "/", scheme="https")
    curl("old.example", 8444, "/", "--tls-max", "1.2", scheme="https")
    run("openssl", "s_client", "-connect", "127.0.0.1:8445", "-noservername", check=False, input=b"")
    run("node", "-e", NODE % ("https", 8446, "node.example", "node.example", "/"), check=False)
    run(QUICGO, "tls", "go.example", "8447", check=False)
    run("java", f"{WORK}/Get.java", "https://java.example:8448/", check=False)
    run(QUICGO, "client", "quic-go.example", "9443")
    run(QUICGO, "client", "quic-two.example", "9445", "v2")
    asyncio.run(aioquic("aioquic.example", 9444))
    run("getent", "ahosts", "Video.example")


def main():
    run("ip", "link", "set", "lo", "mtu", "1500", "up")
    run("ethtool", "-K", "lo", "tso", "off", "gso", "off", "gro", "off", "tx", "off", check=False)
    for name, text in [("resolv.conf", "nameserver 127.0.0.1\n"), ("hosts", "127.0.0.1 java.example localhost\n")]:
        with open(f"{WORK}/{name}", "w") as file:
            file.write(text)
        run("mount", "--bind", f"{WORK}/{name}", f"/etc/{name}")
    with open(f"{WORK}/Get.java", "w") as file:
        file.write(JAVA)
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
        "-subj", "/CN=example", "-keyout", KEY, "-out", CERT, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERT, KEY)
    context.set_alpn_protocols(["http/1.1"])
    for port in range(8001, 8010):
        listen(port)
    for port in range(8443, 8449):
        listen(port, context)
    resolve()
    servers = [subprocess.Popen([QUICGO, "server", port, CERT, KEY]) for port in ("9443", "9445")]
    raw = f"{WORK}/raw.pcap"
    what = "udp port 53 or (dst portrange 8001-9999 and (udp or tcp[13] & 2 != 0 or greater 70))"
    dump = subprocess.Popen(["tcpdump", "-i", "lo", "-U", "-s", "1600", "-w", raw, what])
    time.sleep(2)
    try:
        clients()
        time.sleep(1)
    finally:
        for process in [*servers, dump]:
            process.terminate()
            process.wait()
    trim(raw, f"{HERE}/clients.pcap")


def trim(raw, out):
    """Keeps the SYN, and the first few packets with something in them, of each flow."""
    import struct

    data, kept, counts = open(raw, "rb").read(), [], {}
    kept.append(data[:24])
    at = 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        record = data[at : at + 16 + length]
        at += 16 + length
        packet = record[16 + 14 :]
        key = packet[9:10] + packet[12:24]
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= 5:
            kept.append(record)
    with open(out, "wb") as file:
        file.write(b"".join(kept))
    print(out, sum(map(len, kept)), "bytes", len(kept) - 1, "packets")


main()
