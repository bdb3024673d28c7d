package driver

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"os"
)

// Login has the fields of SLUICE_TEST_LOGIN.
type Login struct {
	CA        string `json:"ca"`
	Mechanism string `json:"mechanism"`
	User      string `json:"user"`
	Password  string `json:"password"`
}

// CurrentLogin returns the login that the environment states; nil for plain text.
func CurrentLogin() *Login {
	given := os.Getenv("SLUICE_TEST_LOGIN")
	if given == "" {
		return nil
	}
	login := &Login{}
	Must(json.Unmarshal([]byte(given), login))
	return login
}

// TLS trusts the authority of the login.
func (l *Login) TLS() *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(Got(os.ReadFile(l.CA)))
	return &tls.Config{RootCAs: pool}
}
