// Package kubernetes finds what Prometheus's own discovery of Kubernetes does
// not know: Gateways and HTTPRoutes of the Gateway API, and Routes of OpenShift.
// It is a mechanism of Prometheus's discovery like that one, has its settings,
// and names its labels as that one would.
//
// Objects are watched by the dynamic client, so that an API which does not have
// them costs nothing but a question twice a minute. Only what labels are made of
// is read of them.
package kubernetes
