/*
 * Who is let in. A connection is proven once a whole request has come over it; until then it is
 * worth little, since it costs its client nothing. Rules, so that silent crowds lock out no one:
 *
 * 1. A source (an address; of IPv6 its /64) has at most a quarter of all connections unproven and
 *    three quarters in all. Past that its own oldest unproven one makes room.
 * 2. When all places are taken, the oldest unproven connection of the server makes room. Only when
 *    all are proven is the newcomer closed.
 * 3. Requests with a body share one budget of bytes and of their number. Past it, or when a source
 *    has half of it and asks for more, the answer is 429.
 *
 * Sources live while a connection or an exchange is theirs.
 */
#include <netinet/in.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/http/http_internal.h"

#define ADMIT_SMALL ((size_t)16) /* sources are not told apart among so few connections */

struct http_source {
    size_t refs;
    size_t connection_count;
    size_t fresh_count;
    struct http_link fresh; /* its unproven connections, the oldest first */
    size_t bodies_bytes;
    size_t bodies_count;
    td_str key; /* of key_bytes */
    char key_bytes[sizeof(struct in6_addr)];
};

/* ---- Sources ---- */

/* Writes the part of an address that tells sources apart; returns its length. */
static size_t source_key(const struct sockaddr *address, char *ret)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *narrow = (const struct sockaddr_in *)address;
        memcpy(ret, &narrow->sin_addr, sizeof(narrow->sin_addr));
        return sizeof(narrow->sin_addr);
    }
    if (address->sa_family != AF_INET6) {
        return 0;
    }
    const struct in6_addr *wide = &((const struct sockaddr_in6 *)address)->sin6_addr;
    bool is_mapped = IN6_IS_ADDR_V4MAPPED(wide);
    size_t from = is_mapped ? 12 : 0; /* ::ffff:10.0.0.1 is 10.0.0.1 */
    size_t len = is_mapped ? 4 : 8;
    memcpy(ret, wide->s6_addr + from, len);
    return len;
}

struct http_source *http_source_get(struct td_http_server *server, const struct sockaddr *address)
{
    char bytes[sizeof(struct in6_addr)];
    td_str key = {.ptr = bytes, .len = source_key(address, bytes)};
    struct http_source *source = td_map_get(&server->sources, key);
    if (!source) {
        source = td_alloc_zero(1, sizeof(*source));
        memcpy(source->key_bytes, bytes, key.len);
        source->key = (td_str){.ptr = source->key_bytes, .len = key.len};
        http_list_init(&source->fresh);
        int code = td_map_put(&server->sources, source->key, source);
        td_assert(code == TD_OK); /* there are no more of them than connections and exchanges */
    }
    source->refs++;
    return source;
}

struct http_source *http_source_ref(struct http_source *source)
{
    source->refs++;
    return source;
}

void http_source_unref(struct td_http_server *server, struct http_source *source)
{
    td_assert(source->refs > 0);
    if (--source->refs == 0) {
        td_assert(td_map_remove(&server->sources, source->key));
        td_free(source);
    }
}

/* ---- Connections ---- */

static struct http_connection *connection_of_fresh(struct http_link *link)
{
    return (struct http_connection *)((char *)link - offsetof(struct http_connection, fresh));
}

static struct http_connection *connection_of_kin(struct http_link *link)
{
    return (struct http_connection *)((char *)link - offsetof(struct http_connection, kin));
}

static bool source_drop_oldest(struct http_source *source)
{
    if (http_list_is_empty(&source->fresh)) {
        return false;
    }
    http_connection_drop(connection_of_kin(source->fresh.next));
    return true;
}

bool http_admit_drop_oldest(struct td_http_server *server)
{
    if (http_list_is_empty(&server->fresh)) {
        return false;
    }
    http_connection_drop(connection_of_fresh(server->fresh.next));
    return true;
}

static size_t admit_share(const struct td_http_server *server, size_t quarters)
{
    size_t all = server->limits.connections_max;
    return all <= ADMIT_SMALL ? all : all / 4 * quarters;
}

bool http_admit_make_room(struct td_http_server *server, struct http_source *source)
{
    if (source->fresh_count >= admit_share(server, 1)) {
        (void)source_drop_oldest(source); /* it has one */
    }
    if (source->connection_count >= admit_share(server, 3) && !source_drop_oldest(source)) {
        return false;
    }
    return server->connection_count < server->limits.connections_max ||
           http_admit_drop_oldest(server);
}

void http_admit_add(struct http_connection *connection)
{
    connection->source->connection_count++;
    connection->source->fresh_count++;
    http_list_add(&connection->server->fresh, &connection->fresh);
    http_list_add(&connection->source->fresh, &connection->kin);
}

void http_admit_prove(struct http_connection *connection)
{
    if (!connection->is_proven) {
        connection->is_proven = true;
        connection->source->fresh_count--;
        http_list_remove(&connection->fresh);
        http_list_remove(&connection->kin);
    }
}

void http_admit_remove(struct http_connection *connection)
{
    http_admit_prove(connection);
    td_assert(connection->source->connection_count > 0);
    connection->source->connection_count--;
    http_source_unref(connection->server, connection->source);
}

/* ---- Bodies ---- */

void http_admit_count_body(struct td_http_server *server, struct http_source *source, size_t before,
                           size_t now)
{
    td_assert(server->bodies_bytes >= before);
    td_assert(source->bodies_bytes >= before);
    server->bodies_bytes = server->bodies_bytes - before + now;
    source->bodies_bytes = source->bodies_bytes - before + now;
    server->bodies_count = server->bodies_count - (before > 0) + (now > 0);
    source->bodies_count = source->bodies_count - (before > 0) + (now > 0);
}

bool http_admit_has_budget(const struct td_http_server *server, const struct http_source *source)
{
    const struct td_http_limits *limits = &server->limits;
    bool is_within = server->bodies_bytes <= limits->bodies_bytes_max &&
                     server->bodies_count <= limits->bodies_count_max;
    bool is_fair =
        source->bodies_count <= 1 || (source->bodies_bytes <= limits->bodies_bytes_max / 2 &&
                                      source->bodies_count <= limits->bodies_count_max / 2);
    return is_within && is_fair;
}
