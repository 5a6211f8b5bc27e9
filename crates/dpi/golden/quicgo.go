package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// quicgo server PORT CERT KEY | quicgo client HOST PORT [v2] | quicgo tls HOST PORT
func main() {
	switch os.Args[1] {
	case "server":
		mux := http.NewServeMux()
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") })
		s := http3.Server{Addr: "127.0.0.1:" + os.Args[2], Handler: mux,
			QUICConfig: &quic.Config{Versions: []quic.Version{quic.Version1, quic.Version2}}}
		fmt.Println(s.ListenAndServeTLS(os.Args[3], os.Args[4]))
	case "client":
		v := quic.Version1
		if len(os.Args) > 4 {
			v = quic.Version2
		}
		tr := &http3.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
			QUICConfig:      &quic.Config{Versions: []quic.Version{v}},
			Dial: func(ctx context.Context, addr string, t *tls.Config, c *quic.Config) (*quic.Conn, error) {
				return quic.DialAddr(ctx, "127.0.0.1:"+os.Args[3], t, c)
			},
		}
		c := http.Client{Transport: tr, Timeout: 3 * time.Second}
		r, err := c.Get("https://" + os.Args[2] + ":" + os.Args[3] + "/x")
		fmt.Println(r, err)
	case "tls":
		c := http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{
			ForceAttemptHTTP2: true,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			DialContext: func(ctx context.Context, n, a string) (net.Conn, error) {
				return net.Dial("tcp", "127.0.0.1:"+os.Args[3])
			}}}
		r, err := c.Get("https://" + os.Args[2] + ":" + os.Args[3] + "/x")
		fmt.Println(r, err)
	}
}
