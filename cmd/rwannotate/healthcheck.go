package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rwannotate/rwannotate/internal/config"
)

// healthTimeout is below the one second that orchestrators give a probe.
const healthTimeout = 900 * time.Millisecond

func newHealthcheckCmd(std streams) *cobra.Command {
	var flags configFlags
	var addr string
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask a running rwannotate whether it is well",
		Long: `Ask a running rwannotate on this machine whether its pipeline moves, for images
without a shell or curl. Prints one line; the exit code is 0 if it does, else 1.

It asks at --addr, else where the configuration says that the daemon listens
(web.listen, RWANNOTATE_WEB_LISTEN).`,
		Example: `  HEALTHCHECK CMD ["/usr/bin/rwannotate", "healthcheck"]`,
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if addr == "" {
				addr = listenAddress(&flags)
			}
			said, err := health(cmd.Context(), addr)
			if err != nil {
				return exitf(exitRuntime, "%v", err)
			}
			fmt.Fprintf(std.out, "%s: %s\n", addr, said)
			return nil
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "", "`HOST:PORT` to ask")
	cmd.Flags().StringVarP(&flags.file, "config", "c", "", "configuration `FILE` of the daemon (default $RWANNOTATE_CONFIG, else "+defaultConfigFile+" if it exists)")
	flags.set = cmd.Flags()
	return cmd
}

// listenAddress is what the configuration says, faulty or not: whether that is
// in order is not asked here.
func listenAddress(flags *configFlags) string {
	c, _, _ := config.Load(flags.path(), config.EnvOf(os.Environ()), nil)
	return c.Web.Listen
}

// health asks the daemon at addr.
func health(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("%q is no host:port to ask; web.listen is empty, or --addr is wrong", addr)
	}
	switch host { // every address: ask this machine
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/-/healthy", nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // and no proxy
	res, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("not healthy: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	if err != nil {
		return "", fmt.Errorf("not healthy: read the answer of %s: %w", addr, err)
	}
	said := firstLine(strings.TrimSpace(string(body)))
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("not healthy: %s: %s", addr, said)
	}
	return said, nil
}
