/*
 * http_sink PORT
 *
 * A bucket that keeps nothing but small objects: what is PUT is read and forgotten, so that a
 * measurement of who writes hardly meets the server.  Each connection has a thread.  Objects of at
 * most 64 KiB whose name has no "/c/" (documents and locks) can be read again; uploads in parts are
 * answered; a listing is empty.  Takes every signature.  No code of the project.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HEAD_SIZE = 32 << 10,
    BODY_SIZE = 256 << 10,
    KEPT_SIZE = 64 << 10
};

typedef struct object {
    char *name, *data;
    size_t nbytes;
    struct object *next;
} object;

static struct {
    pthread_mutex_t lock;
    object *first;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct request {
    char method[8], name[4096];
    char *query; /* in `name`; NULL: none */
    size_t nbytes;
    bool expects, only_new;
} request;

/* Lock held. */
static object **find(const char *name)
{
    object **at = &kept.first;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static bool keep(const request *r, const char *data)
{
    pthread_mutex_lock(&kept.lock);
    object **at = find(r->name);
    bool taken = *at == NULL || !r->only_new;
    if (taken) {
        if (*at == NULL) {
            *at = calloc(1, sizeof(object));
            (*at)->name = strdup(r->name);
        }
        free((*at)->data);
        (*at)->data = malloc(r->nbytes + 1);
        memcpy((*at)->data, data, r->nbytes);
        (*at)->nbytes = r->nbytes;
    }
    pthread_mutex_unlock(&kept.lock);
    return taken;
}

static void forget(const char *name)
{
    pthread_mutex_lock(&kept.lock);
    object **at = find(name), *gone = *at;
    if (gone != NULL) {
        *at = gone->next;
        free(gone->name);
        free(gone->data);
        free(gone);
    }
    pthread_mutex_unlock(&kept.lock);
}

static bool send_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        data += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool answer(int fd, int status, const char *type, const char *body, size_t n, bool without)
{
    char *text = malloc(n + 512);
    int head = snprintf(text, 512,
                        "HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                        "ETag: \"00000000000000000000000000000000-1\"\r\n\r\n",
                        status, type, n);
    if (!without)
        memcpy(text + head, body, n);
    bool sent = send_all(fd, text, (size_t)head + (without ? 0 : n));
    free(text);
    return sent;
}

static bool answer_xml(int fd, const char *xml)
{
    return answer(fd, 200, "application/xml", xml, strlen(xml), false);
}

static bool answer_get(int fd, const request *r)
{
    char data[KEPT_SIZE];
    size_t n = 0;
    if (r->query != NULL && strstr(r->query, "list-type") != NULL)
        return answer_xml(fd,
                          "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>");
    pthread_mutex_lock(&kept.lock);
    const object *o = *find(r->name);
    bool there = o != NULL;
    if (there)
        memcpy(data, o->data, n = o->nbytes);
    pthread_mutex_unlock(&kept.lock);
    return answer(fd, there ? 200 : 404, "application/octet-stream", data, n, r->method[0] == 'H');
}

static bool answer_post(int fd, const request *r)
{
    if (r->query != NULL && strncmp(r->query, "uploads", 7) == 0)
        return answer_xml(fd, "<InitiateMultipartUploadResult><UploadId>1</UploadId>"
                              "</InitiateMultipartUploadResult>");
    return answer_xml(fd, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>");
}

/* The head that ends at END. */
static bool parse(char *head, const char *end, request *r)
{
    char *line = head, *next;
    *r = (request){0};
    if (sscanf(head, "%7s %4095s", r->method, r->name) != 2)
        return false;
    if ((r->query = strchr(r->name, '?')) != NULL)
        *r->query++ = '\0';
    for (; line < end && (next = strstr(line, "\r\n")) != NULL; line = next + 2) {
        if (strncasecmp(line, "content-length:", 15) == 0)
            r->nbytes = strtoul(line + 15, NULL, 10);
        r->expects = r->expects || strncasecmp(line, "expect:", 7) == 0;
        r->only_new = r->only_new || strncasecmp(line, "if-none-match:", 14) == 0;
    }
    return true;
}

/* Reads the body, of which N bytes are there; BODY then has it, where it is short. */
static bool take_body(int fd, const request *r, char *body, size_t n)
{
    bool whole = r->nbytes <= BODY_SIZE;
    if (r->expects && n < r->nbytes && !send_all(fd, "HTTP/1.1 100 Continue\r\n\r\n", 25))
        return false;
    while (n < r->nbytes) {
        size_t want = r->nbytes - n < BODY_SIZE ? r->nbytes - n : BODY_SIZE;
        ssize_t got = recv(fd, body + (whole ? n : 0), want, 0);
        if (got <= 0)
            return false;
        n += (size_t)got;
    }
    return true;
}

static bool serve(int fd, const request *r, const char *body)
{
    if (strcmp(r->method, "PUT") == 0) {
        bool stays = r->query == NULL && r->nbytes <= KEPT_SIZE && strstr(r->name, "/c/") == NULL;
        return answer(fd, stays && !keep(r, body) ? 412 : 200, "text/plain", "", 0, false);
    }
    if (strcmp(r->method, "POST") == 0)
        return answer_post(fd, r);
    if (strcmp(r->method, "DELETE") != 0)
        return answer_get(fd, r);
    forget(r->name);
    return answer(fd, 204, "text/plain", "", 0, true);
}

static void *connection(void *context)
{
    int fd = (int)(long)context;
    char *head = malloc(HEAD_SIZE + 1), *body = malloc(BODY_SIZE), *end;
    size_t n = 0;
    request r;
    for (;;) {
        head[n] = '\0';
        if ((end = strstr(head, "\r\n\r\n")) == NULL) {
            ssize_t got = n < HEAD_SIZE ? recv(fd, head + n, HEAD_SIZE - n, 0) : 0;
            if (got <= 0)
                break;
            n += (size_t)got;
            continue;
        }
        size_t used = (size_t)(end + 4 - head);
        if (!parse(head, end, &r))
            break;
        size_t begun = n - used < r.nbytes ? n - used : r.nbytes;
        memcpy(body, end + 4, begun);
        n -= used + begun;
        if (!take_body(fd, &r, body, begun) || !serve(fd, &r, body))
            break;
        memmove(head, head + used + begun, n);
    }
    free(head);
    free(body);
    close(fd);
    return NULL;
}

int main(int argc, char **argv)
{
    int one = 1, at = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in place = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(argc > 1 ? argv[1] : "0")),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(at, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (at < 0 || bind(at, (struct sockaddr *)&place, sizeof(place)) != 0 || listen(at, 512) != 0) {
        perror("http_sink");
        return 1;
    }
    for (;;) {
        pthread_t thread;
        long fd = accept(at, NULL, NULL);
        if (fd < 0)
            continue;
        setsockopt((int)fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (pthread_create(&thread, NULL, connection, (void *)fd) == 0)
            pthread_detach(thread);
        else
            close((int)fd);
    }
}
