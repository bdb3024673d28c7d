package main

import "github.com/xdg-go/scram"

// scramClient is the implementation of SCRAM that sarama lacks.
type scramClient struct {
	*scram.ClientConversation
}

func (c *scramClient) Begin(user, password, authorizationID string) error {
	client, err := scram.SHA512.NewClient(user, password, authorizationID)
	if err == nil {
		c.ClientConversation = client.NewConversation()
	}
	return err
}
