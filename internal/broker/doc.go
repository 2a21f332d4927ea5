// Package broker runs the NATS server of a bus inside this process.
package broker
