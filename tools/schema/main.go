// Writes the C table of Kubernetes kinds, src/kube/schema/schema_table.inc, to standard output.
//
// Two sources are joined. The Go types give JSON names, scalar kinds, the strategic merge patch tags, and the field
// numbers of the protobuf form, which stand in their tags too. The API server's own OpenAPI definitions say what it
// publishes (names of types, required fields, defaults, allowed values), and, converted to the typed schema of
// structured-merge-diff, how server-side apply divides a value: list keys with their defaults, sets, and what is atomic.
// A type that is reached in two topologies gets two rows. Of the published descriptions none is used.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	publishedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	custommetricsv1beta1 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta1"
	custommetricsv1beta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	externalmetricsv1beta1 "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

type kind struct {
	apiVersion, name string
	object           any
}

var kinds = []kind{
	{"v1", "Binding", corev1.Binding{}},
	{"v1", "ConfigMap", corev1.ConfigMap{}},
	{"v1", "DeleteOptions", metav1.DeleteOptions{}},
	{"v1", "Endpoints", corev1.Endpoints{}},
	{"v1", "Event", corev1.Event{}},
	{"v1", "LimitRange", corev1.LimitRange{}},
	{"v1", "Namespace", corev1.Namespace{}},
	{"v1", "Node", corev1.Node{}},
	{"v1", "PersistentVolume", corev1.PersistentVolume{}},
	{"v1", "PersistentVolumeClaim", corev1.PersistentVolumeClaim{}},
	{"v1", "Pod", corev1.Pod{}},
	{"v1", "PodTemplate", corev1.PodTemplate{}},
	{"v1", "ReplicationController", corev1.ReplicationController{}},
	{"v1", "ResourceQuota", corev1.ResourceQuota{}},
	{"v1", "Secret", corev1.Secret{}},
	{"v1", "Service", corev1.Service{}},
	{"v1", "ServiceAccount", corev1.ServiceAccount{}},
	{"v1", "Status", metav1.Status{}},
	{"apps/v1", "ControllerRevision", appsv1.ControllerRevision{}},
	{"apps/v1", "DaemonSet", appsv1.DaemonSet{}},
	{"apps/v1", "Deployment", appsv1.Deployment{}},
	{"apps/v1", "ReplicaSet", appsv1.ReplicaSet{}},
	{"apps/v1", "StatefulSet", appsv1.StatefulSet{}},
	{"batch/v1", "CronJob", batchv1.CronJob{}},
	{"batch/v1", "Job", batchv1.Job{}},
	{"autoscaling/v1", "HorizontalPodAutoscaler", autoscalingv1.HorizontalPodAutoscaler{}},
	{"autoscaling/v1", "Scale", autoscalingv1.Scale{}},
	{"autoscaling/v2", "HorizontalPodAutoscaler", autoscalingv2.HorizontalPodAutoscaler{}},
	{"policy/v1", "Eviction", policyv1.Eviction{}},
	{"policy/v1", "PodDisruptionBudget", policyv1.PodDisruptionBudget{}},
	{"coordination.k8s.io/v1", "Lease", coordinationv1.Lease{}},
	{"apiextensions.k8s.io/v1", "CustomResourceDefinition", apiextensionsv1.CustomResourceDefinition{}},
	{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration",
		admissionregistrationv1.MutatingWebhookConfiguration{}},
	{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy",
		admissionregistrationv1.ValidatingAdmissionPolicy{}},
	{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding",
		admissionregistrationv1.ValidatingAdmissionPolicyBinding{}},
	{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration",
		admissionregistrationv1.ValidatingWebhookConfiguration{}},
	{"rbac.authorization.k8s.io/v1", "ClusterRole", rbacv1.ClusterRole{}},
	{"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", rbacv1.ClusterRoleBinding{}},
	{"rbac.authorization.k8s.io/v1", "Role", rbacv1.Role{}},
	{"rbac.authorization.k8s.io/v1", "RoleBinding", rbacv1.RoleBinding{}},
	{"events.k8s.io/v1", "Event", eventsv1.Event{}},
	{"admission.k8s.io/v1", "AdmissionReview", admissionv1.AdmissionReview{}},
	{"authentication.k8s.io/v1", "SelfSubjectReview", authenticationv1.SelfSubjectReview{}},
	{"authentication.k8s.io/v1", "TokenRequest", authenticationv1.TokenRequest{}},
	{"authentication.k8s.io/v1", "TokenReview", authenticationv1.TokenReview{}},
	{"authorization.k8s.io/v1", "LocalSubjectAccessReview", authorizationv1.LocalSubjectAccessReview{}},
	{"authorization.k8s.io/v1", "SelfSubjectAccessReview", authorizationv1.SelfSubjectAccessReview{}},
	{"authorization.k8s.io/v1", "SelfSubjectRulesReview", authorizationv1.SelfSubjectRulesReview{}},
	{"authorization.k8s.io/v1", "SubjectAccessReview", authorizationv1.SubjectAccessReview{}},
	{"discovery.k8s.io/v1", "EndpointSlice", discoveryv1.EndpointSlice{}},
	{"networking.k8s.io/v1", "Ingress", networkingv1.Ingress{}},
	{"networking.k8s.io/v1", "IngressClass", networkingv1.IngressClass{}},
	{"networking.k8s.io/v1", "NetworkPolicy", networkingv1.NetworkPolicy{}},
	{"node.k8s.io/v1", "RuntimeClass", nodev1.RuntimeClass{}},
	{"scheduling.k8s.io/v1", "PriorityClass", schedulingv1.PriorityClass{}},
	{"storage.k8s.io/v1", "CSINode", storagev1.CSINode{}},
	{"storage.k8s.io/v1", "StorageClass", storagev1.StorageClass{}},
	{"apiregistration.k8s.io/v1", "APIService", apiregistrationv1.APIService{}},
	{"metrics.k8s.io/v1beta1", "NodeMetrics", metricsv1beta1.NodeMetrics{}},
	{"metrics.k8s.io/v1beta1", "PodMetrics", metricsv1beta1.PodMetrics{}},
	{"custom.metrics.k8s.io/v1beta1", "MetricValueList", custommetricsv1beta1.MetricValueList{}},
	{"custom.metrics.k8s.io/v1beta2", "MetricValueList", custommetricsv1beta2.MetricValueList{}},
	{"external.metrics.k8s.io/v1beta1", "ExternalMetricValueList",
		externalmetricsv1beta1.ExternalMetricValueList{}},
}

// Types that write themselves, so that reflection would show the wrong shape.
var leaves = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():                            "QUANTITY",
	reflect.TypeFor[intstr.IntOrString]():                           "INT_OR_STRING",
	reflect.TypeFor[metav1.Time]():                                  "TIME",
	reflect.TypeFor[metav1.MicroTime]():                             "MICRO_TIME",
	reflect.TypeFor[metav1.Duration]():                              "DURATION",
	reflect.TypeFor[runtime.RawExtension]():                         "ANY",
	reflect.TypeFor[metav1.FieldsV1]():                              "ANY",
	reflect.TypeFor[apiextensionsv1.JSON]():                         "ANY",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "ANY",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "ANY",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "ANY",
}

// Of these, the ones whose protobuf form is a choice between a schema and something else.
var choices = map[reflect.Type]string{
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "OR_ARRAY",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "OR_BOOL",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "OR_STRINGS",
}

type field struct {
	name       string
	typ        *row
	isPointer  bool
	isWritten  bool // even when it is zero
	isRequired bool // as published
	hasDefault bool // as published: the type's fallback, or its zero value
	strategy   string
	key        string
	number     int // in protobuf, below the numbers of inlined structs, a byte each; or 0
}

// One struct td_schema_type. Rows are equal when their ids are.
type row struct {
	id       string // C name, without its T_
	pkg      string // published name, up to its last dot; empty for what is published where it is used
	name     string // and the rest of it
	kind     string
	topology string
	variant  bool   // another topology than the published type has, so that fields must say it
	values   string // allowed ones, separated by commas
	fallback string // published default that is not zero, as JSON
	proto    string // form in protobuf where that is special
	element  *row
	fields   []field
	keys     string // C name of the keys' array
	keyCount int
}

type table struct {
	rows     map[string]*row
	owner    map[string]reflect.Type // which Go type has the plain name
	keys     map[string]string       // C name to initialiser
	topology *smd.Schema
	models   map[string]*spec.Schema // what the API server publishes
}

// The name under which a type is published: "io.k8s.api.apps.v1" and "Deployment".
func published(typ reflect.Type) (string, string) {
	if model, ok := reflect.New(typ).Interface().(interface{ OpenAPIModelName() string }); ok {
		name := model.OpenAPIModelName()
		dot := strings.LastIndex(name, ".")
		return name[:dot], name[dot+1:]
	}
	return strings.ReplaceAll(strings.Replace(typ.PkgPath(), "k8s.io", "io.k8s", 1), "/", "."), typ.Name()
}

func items(s *spec.Schema) *spec.Schema {
	if s == nil || s.Items == nil {
		return nil
	}
	return s.Items.Schema
}

func values(s *spec.Schema) *spec.Schema {
	if s == nil || s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}

func (t *table) divided(name string) (*smd.Schema, *smd.Atom) {
	if def, ok := t.topology.FindNamedType(name); ok {
		return t.topology, &def.Atom
	}
	return nil, nil
}

// What server-side apply knows about a type; schema is nil when it does not know it.
type place struct {
	schema *smd.Schema
	atom   *smd.Atom
}

func (p place) resolve(ref smd.TypeRef) place {
	if p.schema == nil {
		return place{}
	}
	atom, ok := p.schema.Resolve(ref)
	if !ok {
		return place{}
	}
	return place{p.schema, &atom}
}

func (p place) element() place {
	if p.atom != nil && p.atom.List != nil {
		return p.resolve(p.atom.List.ElementType)
	}
	if p.atom != nil && p.atom.Map != nil {
		return p.resolve(p.atom.Map.ElementType)
	}
	return place{}
}

func (p place) field(name string) place {
	if p.atom != nil && p.atom.Map != nil {
		if f, ok := p.atom.Map.FindField(name); ok {
			return p.resolve(f.Type)
		}
	}
	return place{}
}

func (p place) isAtomicMap() bool {
	return p.atom != nil && p.atom.Map != nil && p.atom.Map.ElementRelationship == smd.Atomic
}

func (t *table) add(r *row) *row {
	if known, ok := t.rows[r.id]; ok {
		return known
	}
	t.rows[r.id] = r
	return r
}

func camel(kind string) string {
	out := ""
	for _, word := range strings.Split(kind, "_") {
		out += word[:1] + strings.ToLower(word[1:])
	}
	return out
}

// A type that writes itself; it is published under its own name.
func (t *table) named(typ reflect.Type, kind string, p place) *row {
	r := &row{id: typ.Name(), kind: kind, topology: "GRANULAR"}
	r.pkg, r.name = published(typ)
	if proto, ok := choices[typ]; ok {
		r.proto = proto
		r.element = t.build(reflect.TypeFor[apiextensionsv1.JSONSchemaProps](), place{}, nil)
	} else if kind != "ANY" {
		r.topology = "ATOMIC"
	} else if p.isAtomicMap() {
		r.topology = "ATOMIC"
		r.id += "_atomic"
	}
	return t.add(r)
}

// The zero value gets no fallback: a flag of the field says that it is published.
func fallback(s *spec.Schema) string {
	if s == nil || s.Default == nil {
		return ""
	}
	text, err := json.Marshal(s.Default)
	if err != nil {
		log.Fatal(err)
	}
	if slices.Contains([]string{"{}", `""`, "0", "false"}, string(text)) {
		return ""
	}
	return string(text)
}

// A scalar, or bytes; those with allowed values or a default of their own have rows of their own.
func (t *table) leaf(typ reflect.Type, kind string, s *spec.Schema) *row {
	r := &row{id: camel(kind), kind: kind, topology: "ATOMIC", fallback: fallback(s)}
	if s != nil && len(s.Enum) > 0 {
		var allowed []string
		for _, value := range s.Enum {
			text := value.(string)
			if strings.Contains(text, ",") {
				log.Fatalf("%s allows %q, which has a comma", typ, text)
			}
			allowed = append(allowed, text)
		}
		r.values = strings.Join(allowed, ",")
		r.id = "Choice_" + typ.Name()
	}
	if r.fallback != "" {
		r.id += "_or_" + strings.NewReplacer(`"`, "", "/", "_").Replace(r.fallback)
	}
	known := t.add(r)
	if known.values != r.values {
		log.Fatalf("two types are named %s and allow different values", r.id)
	}
	return known
}

func (t *table) build(typ reflect.Type, p place, s *spec.Schema) *row {
	if typ.Kind() == reflect.Pointer {
		return t.build(typ.Elem(), p, s)
	}
	if kind, ok := leaves[typ]; ok {
		return t.named(typ, kind, p)
	}
	switch typ.Kind() {
	case reflect.String:
		return t.leaf(typ, "STRING", s)
	case reflect.Bool:
		return t.leaf(typ, "BOOL", s)
	case reflect.Int32:
		return t.leaf(typ, "INT32", s)
	case reflect.Int64:
		return t.leaf(typ, "INT64", s)
	case reflect.Float64:
		return t.leaf(typ, "NUMBER", s)
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Uint8 {
			return t.leaf(typ, "BYTES", nil)
		}
		return t.list(typ, p, s)
	case reflect.Map:
		return t.dictionary(typ, p, s)
	case reflect.Struct:
		return t.object(typ, p)
	}
	log.Fatalf("no kind for %v", typ)
	return nil
}

func (t *table) list(typ reflect.Type, p place, s *spec.Schema) *row {
	element := t.build(typ.Elem(), p.element(), items(s))
	r := &row{id: "list_" + element.id, kind: "LIST", topology: "ATOMIC", element: element}
	if p.atom != nil && p.atom.List != nil && p.atom.List.ElementRelationship == smd.Associative {
		names := p.atom.List.Keys
		if len(names) == 0 {
			r.topology = "SET"
			r.id += "_set"
		} else {
			r.topology = "KEYED"
			r.keys = t.listKeys(names, p.element())
			r.keyCount = len(names)
			r.id += strings.Replace(r.keys, "keys_", "_by_", 1)
		}
	}
	// A named list is a message of its own where the type can write itself.
	if _, ok := reflect.New(typ).Interface().(interface{ MarshalTo([]byte) (int, error) }); ok {
		r.proto = "ITEMS"
		r.id += "_items"
	}
	return t.add(r)
}

func (t *table) listKeys(names []string, element place) string {
	id := "keys"
	var init []string
	for _, name := range names {
		fallback := ""
		f, ok := element.atom.Map.FindField(name)
		if !ok {
			log.Fatalf("list key %s is no field", name)
		}
		id += "_" + name
		if f.Default != nil {
			text, err := json.Marshal(f.Default)
			if err != nil {
				log.Fatal(err)
			}
			fallback = string(text)
		} else {
			id += "_required"
		}
		init = append(init, fmt.Sprintf("KEY(%q, %q)", name, fallback))
	}
	text := strings.Join(init, ", ")
	if known, ok := t.keys[id]; ok && known != text {
		for n := 2; ok && known != text; n++ {
			id = fmt.Sprintf("%s%d", id, n)
			known, ok = t.keys[id]
		}
	}
	t.keys[id] = text
	return id
}

func (t *table) dictionary(typ reflect.Type, p place, s *spec.Schema) *row {
	element := t.build(typ.Elem(), p.element(), values(s))
	r := &row{id: "map_" + element.id, kind: "MAP", topology: "GRANULAR", element: element}
	if p.isAtomicMap() {
		r.topology = "ATOMIC"
		r.id += "_atomic"
	}
	return t.add(r)
}

func (t *table) object(typ reflect.Type, p place) *row {
	pkg, name := published(typ)
	if p.atom == nil {
		p.schema, p.atom = t.divided(pkg + "." + name)
	}
	id := typ.Name()
	if owner, ok := t.owner[id]; ok && owner != typ {
		parts := strings.Split(typ.PkgPath(), "/")
		id += "_" + strings.Join(parts[len(parts)-2:], "_")
	} else {
		t.owner[id] = typ
	}
	topology := "GRANULAR"
	if p.isAtomicMap() {
		topology = "ATOMIC"
	}
	if first, ok := t.rows[id]; ok && first.topology != topology {
		id += "_" + strings.ToLower(topology)
	}
	if known, ok := t.rows[id]; ok {
		return known
	}
	r := t.add(&row{id: id, pkg: pkg, name: name, kind: "OBJECT", topology: topology})
	if model := t.models[pkg+"."+name]; model != nil {
		how, _ := model.Extensions.GetString("x-kubernetes-map-type")
		r.variant = (how == "atomic") != (topology == "ATOMIC")
	}
	t.fields(r, typ, p, 0)
	sort.Slice(r.fields, func(i, j int) bool { return r.fields[i].name < r.fields[j].name })
	for i := 1; i < len(r.fields); i++ {
		if r.fields[i].name == r.fields[i-1].name {
			log.Fatalf("%s has two fields %s", typ, r.fields[i].name)
		}
	}
	return r
}

// The field's number in protobuf, 0 when it has none. TypeMeta has none: the envelope carries it.
func protoNumber(f reflect.StructField) int {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return 0
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil || number < 1 || number > 255 {
		log.Fatalf("%s has the protobuf number %q", f.Name, parts[1])
	}
	return number
}

// Whether the encoder writes a field that holds its zero value. A struct is never empty for omitempty.
func isWritten(f reflect.StructField) bool {
	_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	omitted := strings.Contains(options, "omitempty") && f.Type.Kind() != reflect.Struct
	return !omitted && !strings.Contains(options, "omitzero")
}

// Whether a field is required, and whether it has a default, as published. Kinds that other servers add (metrics) are
// not among the definitions; openapi-gen's own rules for types without markers tell the same of them.
func (t *table) published(r *row, f reflect.StructField, name string) (*spec.Schema, bool, bool) {
	model := t.models[r.pkg+"."+r.name]
	if model == nil {
		isRequired := !strings.Contains(f.Tag.Get("json"), "omitempty")
		isStruct := f.Type.Kind() == reflect.Struct
		kind := leaves[f.Type]
		hasZero := f.Type.Kind() == reflect.String && isRequired || isStruct && (kind == "" || kind == "TIME")
		return nil, isRequired, hasZero
	}
	s, ok := model.Properties[name]
	if !ok {
		log.Fatalf("%s.%s does not publish %s", r.pkg, r.name, name)
	}
	return &s, slices.Contains(model.Required, name), s.Default != nil
}

func (t *table) fields(r *row, typ reflect.Type, p place, outer int) {
	if outer > 0xffff {
		log.Fatalf("%s is inlined three times", typ)
	}
	for i := 0; i < typ.NumField(); i++ {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		number := protoNumber(f)
		switch {
		case name == "-":
			continue
		case name == "" && f.Anonymous:
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			t.fields(r, inner, p, outer<<8|number)
			continue
		case name == "":
			name = f.Name
		}
		if typ == reflect.TypeFor[metav1.TypeMeta]() {
			number = 0
		} else if number == 0 {
			log.Fatalf("%s.%s has no protobuf number", typ, f.Name)
		} else {
			number |= outer << 8
		}
		s, isRequired, hasDefault := t.published(r, f, name)
		r.fields = append(r.fields, field{
			name:       name,
			typ:        t.build(f.Type, p.field(name), s),
			isPointer:  f.Type.Kind() == reflect.Pointer,
			isWritten:  isWritten(f),
			isRequired: isRequired,
			hasDefault: hasDefault,
			strategy:   f.Tag.Get("patchStrategy"),
			key:        f.Tag.Get("patchMergeKey"),
			number:     number,
		})
	}
}

// Plain numbers are written as the .proto files have them, paths so that their bytes show.
func path(number int) string {
	if number > 255 {
		return fmt.Sprintf("0x%04x", number)
	}
	return strconv.Itoa(number)
}

func (f *field) flags() string {
	var words []string
	for _, flag := range []struct {
		isSet bool
		word  string
	}{{f.isPointer, "POINTER"}, {f.isWritten, "WRITTEN"}, {f.isRequired, "REQUIRED"}, {f.hasDefault, "DEFAULTED"}} {
		if flag.isSet {
			words = append(words, flag.word)
		}
	}
	if len(words) == 0 {
		return "0"
	}
	return strings.Join(words, " | ")
}

var strategies = map[string]string{
	"merge":            "MERGE",
	"replace":          "REPLACE",
	"retainKeys":       "RETAIN_KEYS",
	"merge,retainKeys": "MERGE_RETAIN_KEYS",
}

func (t *table) write(out *bufio.Writer, roots []*row) {
	var ids []string
	for id := range t.rows {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	fmt.Fprint(out, "/* Written by tools/schema from Kubernetes v0.36.3; see its README. Do not edit. */\n\n")
	fmt.Fprint(out, "enum schema_id {\n")
	for _, id := range ids {
		fmt.Fprintf(out, "    T_%s,\n", id)
	}
	fmt.Fprint(out, "    T_COUNT,\n};\n\nstatic const struct td_schema_type schema_types[T_COUNT];\n\n")
	var keys []string
	for id := range t.keys {
		keys = append(keys, id)
	}
	sort.Strings(keys)
	for _, id := range keys {
		fmt.Fprintf(out, "static const struct td_schema_key %s[] = {%s};\n", id, t.keys[id])
	}
	for _, id := range ids {
		r := t.rows[id]
		if r.kind != "OBJECT" {
			continue
		}
		fmt.Fprintf(out, "\nstatic const struct td_schema_field fields_%s[] = {\n", id)
		for _, f := range r.fields {
			if f.strategy == "" && f.key == "" {
				fmt.Fprintf(out, "    FIELD(%q, T_%s, %s, %s),\n", f.name, f.typ.id, path(f.number), f.flags())
				continue
			}
			strategy, ok := strategies[f.strategy]
			if !ok {
				if f.strategy != "" {
					log.Fatalf("unknown strategy %q", f.strategy)
				}
				strategy = "DEFAULT"
			}
			fmt.Fprintf(out, "    PATCHED(%q, T_%s, %s, %s, %s, %q),\n", f.name, f.typ.id, path(f.number),
				f.flags(), strategy, f.key)
		}
		fmt.Fprint(out, "};\n")
	}
	fmt.Fprint(out, "\nstatic const struct td_schema_type schema_types[T_COUNT] = {\n")
	for _, id := range ids {
		r := t.rows[id]
		if r.proto != "" {
			fmt.Fprintf(out, "    [T_%s] = SPECIAL(%q, %q, %s, %s, T_%s, %s),\n", id, r.pkg, r.name, r.kind,
				r.topology, r.element.id, r.proto)
			continue
		}
		switch r.kind {
		case "OBJECT":
			word := "OBJECT"
			if r.variant {
				word = "VARIANT"
			}
			fmt.Fprintf(out, "    [T_%s] = %s(%q, %q, %s, fields_%s),\n", id, word, r.pkg, r.name, r.topology, id)
		case "LIST":
			if r.topology == "KEYED" {
				fmt.Fprintf(out, "    [T_%s] = KEYED(T_%s, %s),\n", id, r.element.id, r.keys)
			} else {
				fmt.Fprintf(out, "    [T_%s] = LIST(%s, T_%s),\n", id, r.topology, r.element.id)
			}
		case "MAP":
			fmt.Fprintf(out, "    [T_%s] = MAP(%s, T_%s),\n", id, r.topology, r.element.id)
		default:
			fmt.Fprintf(out, "    [T_%s] = LEAF(%q, %q, %s, %s, %q, %q),\n", id, r.pkg, r.name, r.kind, r.topology,
				r.values, r.fallback)
		}
	}
	fmt.Fprint(out, "};\n\nstatic const struct schema_root schema_roots[] = {\n")
	for i, k := range kinds {
		fmt.Fprintf(out, "    ROOT(%q, %q, T_%s),\n", k.apiVersion, k.name, roots[i].id)
	}
	fmt.Fprint(out, "};\n")
}

// What the API server publishes, by name.
func publishedModels() map[string]*spec.Schema {
	definitions := publishedopenapi.GetOpenAPIDefinitions(func(name string) spec.Ref {
		return spec.MustCreateRef("#/components/schemas/" + name)
	})
	models := map[string]*spec.Schema{}
	for name, definition := range definitions {
		model := definition.Schema
		models[name] = &model
	}
	return models
}

// How server-side apply divides what is published, converted as the API server does it.
func publishedTopology(models map[string]*spec.Schema) *smd.Schema {
	converted, err := schemaconv.ToSchemaFromOpenAPI(models, false)
	if err != nil {
		log.Fatal(err)
	}
	return converted
}

func main() {
	log.SetFlags(0)
	samples := flag.String("samples", "", "write the objects of samples.yaml to this folder instead, in protobuf and JSON")
	random := flag.String("random", "", "write random objects to this folder instead")
	count := flag.Int("count", 10, "random objects of each kind")
	seed := flag.Int64("seed", 1, "of the random objects")
	flag.Parse()
	if *samples != "" {
		writeSamples(*samples)
		return
	}
	if *random != "" {
		writeRandom(*random, *count, *seed)
		return
	}
	t := &table{
		rows:   map[string]*row{},
		owner:  map[string]reflect.Type{},
		keys:   map[string]string{},
		models: publishedModels(),
	}
	t.topology = publishedTopology(t.models)
	sort.SliceStable(kinds, func(i, j int) bool {
		if kinds[i].name != kinds[j].name {
			return kinds[i].name < kinds[j].name
		}
		return kinds[i].apiVersion < kinds[j].apiVersion
	})
	var roots []*row
	for _, k := range kinds {
		roots = append(roots, t.build(reflect.TypeOf(k.object), place{}, nil))
	}
	out := bufio.NewWriter(os.Stdout)
	t.write(out, roots)
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}
