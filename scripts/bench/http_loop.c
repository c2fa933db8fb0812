/*
 * http_loop [-j THREADS] [-n NBYTES] [-p] IN_FLIGHT
 *
 * The roofline of objects over HTTP: one bare loop of libcurl's multi interface that has IN_FLIGHT
 * requests under way, signed with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and THREADS that
 * decode what came: frames of c-blosc of NBYTES each; 0: bytes only.  No code of the project.
 * Standard input has an address a line, or with -p a file and the address to which it is PUT.
 * Prints {"seconds":, "cpu":, "nbytes":, "sum":}, the sum of the CRC32Cs of all that was decoded.
 */
#include <curl/curl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "loops.h"

enum {
    MAX_IN_FLIGHT = 512,
    MAX_THREADS = 64
};

typedef struct body {
    CURL *easy;
    struct curl_slist *headers;
    uint8_t *data;
    size_t n, room, sent;
    struct body *next; /* of those to be decoded, or of those that are free */
} body;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    body *first, *free;
    bool over;
    size_t nbytes;
    uint64_t sum;
    CURLM *multi;
} work = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static void die(const char *why)
{
    fprintf(stderr, "http_loop: %s\n", why);
    exit(1);
}

/* ---- decoding ---- */

static void give_back(body *b)
{
    pthread_mutex_lock(&work.lock);
    b->next = work.free;
    work.free = b;
    pthread_mutex_unlock(&work.lock);
    curl_multi_wakeup(work.multi);
}

static void *decode(void *context)
{
    uint8_t *out = malloc(work.nbytes), *scratch = malloc(work.nbytes);
    ZSTD_DCtx *zstd = ZSTD_createDCtx();
    uint64_t sum = 0;
    if (out == NULL || scratch == NULL || zstd == NULL)
        die("no memory");
    for (;;) {
        pthread_mutex_lock(&work.lock);
        while (work.first == NULL && !work.over)
            pthread_cond_wait(&work.more, &work.lock);
        body *b = work.first;
        if (b != NULL)
            work.first = b->next;
        else
            work.sum += sum;
        pthread_mutex_unlock(&work.lock);
        if (b == NULL)
            break;
        if (!loop_unframe(zstd, out, work.nbytes, b->data, scratch))
            die("what came is no frame of c-blosc");
        sum += *(bool *)context ? loop_crc32c(out, work.nbytes) : out[0];
        give_back(b);
    }
    ZSTD_freeDCtx(zstd);
    free(out);
    free(scratch);
    return NULL;
}

/* ---- requests ---- */

static size_t on_body(char *data, size_t size, size_t n, void *user)
{
    body *b = user;
    if (b->n == 0) {
        curl_off_t length = 0;
        curl_easy_getinfo(b->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        if (length > 0 && (size_t)length > b->room)
            b->data = realloc(b->data, b->room = (size_t)length);
    }
    if (b->data == NULL || b->n + size * n > b->room)
        return 0;
    memcpy(b->data + b->n, data, size * n);
    b->n += size * n;
    return size * n;
}

static size_t on_read(char *out, size_t size, size_t n, void *user)
{
    body *b = user;
    size_t most = size * n < b->n - b->sent ? size * n : b->n - b->sent;
    memcpy(out, b->data + b->sent, most);
    b->sent += most;
    return most;
}

static void load(body *b, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0)
        die("a file cannot be read");
    b->n = (size_t)ftell(f);
    rewind(f);
    if (b->n > b->room)
        b->data = realloc(b->data, b->room = b->n);
    if (fread(b->data, 1, b->n, f) != b->n)
        die("a file cannot be read");
    fclose(f);
    b->sent = 0;
}

/* Begins the request of LINE. */
static void begin(body *b, char *line, bool puts_it, const char *key, const char *secret)
{
    CURL *e = b->easy;
    line[strcspn(line, "\n")] = '\0';
    char *url = puts_it ? strchr(line, '\t') : line;
    if (url == NULL)
        die("a line has no address");
    curl_easy_reset(e);
    if (puts_it) {
        *url++ = '\0';
        load(b, line);
        curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)b->n);
        curl_easy_setopt(e, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(e, CURLOPT_READDATA, b);
        curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, 120L << 10);
        curl_easy_setopt(e, CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);
    } else {
        b->n = 0;
        curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(e, CURLOPT_WRITEDATA, b);
        curl_easy_setopt(e, CURLOPT_BUFFERSIZE, 65536L);
    }
    if (key != NULL) {
        curl_easy_setopt(e, CURLOPT_AWS_SIGV4, "aws:amz:us-east-1:s3");
        curl_easy_setopt(e, CURLOPT_USERNAME, key);
        curl_easy_setopt(e, CURLOPT_PASSWORD, secret);
        curl_easy_setopt(e, CURLOPT_HTTPHEADER, b->headers);
    }
    curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(e, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(e, CURLOPT_PRIVATE, b);
    curl_easy_setopt(e, CURLOPT_URL, url);
    curl_multi_add_handle(work.multi, e);
}

static body *take_free(void)
{
    pthread_mutex_lock(&work.lock);
    body *b = work.free;
    if (b != NULL)
        work.free = b->next;
    pthread_mutex_unlock(&work.lock);
    return b;
}

static void finished(body *b, bool decodes)
{
    if (!decodes) {
        give_back(b);
        return;
    }
    pthread_mutex_lock(&work.lock);
    b->next = work.first;
    work.first = b;
    pthread_cond_signal(&work.more);
    pthread_mutex_unlock(&work.lock);
}

static void run(size_t in_flight, bool puts_them)
{
    const char *key = getenv("AWS_ACCESS_KEY_ID"), *secret = getenv("AWS_SECRET_ACCESS_KEY");
    char *line = NULL;
    size_t room = 0, active = 0;
    bool more = true;
    while (more || active > 0) {
        int alive, left;
        body *b;
        CURLMsg *m;
        while (more && active < in_flight && (b = take_free()) != NULL) {
            more = getline(&line, &room, stdin) > 0;
            if (!more) {
                give_back(b);
                break;
            }
            begin(b, line, puts_them, key, secret);
            active++;
        }
        curl_multi_perform(work.multi, &alive);
        while ((m = curl_multi_info_read(work.multi, &left)) != NULL) {
            if (m->data.result != CURLE_OK)
                die(curl_easy_strerror(m->data.result));
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&b);
            curl_multi_remove_handle(work.multi, m->easy_handle);
            active--;
            finished(b, work.nbytes > 0);
        }
        if (active > 0 || more)
            curl_multi_poll(work.multi, NULL, 0, active == in_flight ? 1000 : 20, NULL);
    }
    free(line);
}

static double seconds_of(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

int main(int argc, char **argv)
{
    static body bodies[MAX_IN_FLIGHT + MAX_THREADS * 2];
    pthread_t thread[MAX_THREADS];
    bool puts_them = false, sums = getenv("HTTP_LOOP_SUMS") != NULL;
    size_t nthreads = 0, in_flight;
    int option;
    while ((option = getopt(argc, argv, "j:n:p")) != -1)
        switch (option) {
        case 'j':
            nthreads = strtoul(optarg, NULL, 10);
            break;
        case 'n':
            work.nbytes = strtoul(optarg, NULL, 10);
            break;
        case 'p':
            puts_them = true;
            break;
        default:
            return 2;
        }
    in_flight = optind < argc ? strtoul(argv[optind], NULL, 10) : 0;
    if (in_flight < 1 || in_flight > MAX_IN_FLIGHT || nthreads > MAX_THREADS)
        die("how many in flight?");
    curl_global_init(CURL_GLOBAL_ALL);
    work.multi = curl_multi_init();
    curl_multi_setopt(work.multi, CURLMOPT_MAXCONNECTS, (long)MAX_IN_FLIGHT);
    for (size_t i = 0; i < in_flight + 2 * nthreads; i++) {
        body *b = &bodies[i];
        b->easy = curl_easy_init();
        b->headers = curl_slist_append(NULL, "x-amz-content-sha256: UNSIGNED-PAYLOAD");
        b->next = work.free;
        work.free = b;
    }
    struct timespec from, to;
    struct rusage usage;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (size_t i = 0; i < nthreads; i++)
        pthread_create(&thread[i], NULL, decode, &sums);
    run(in_flight, puts_them);
    pthread_mutex_lock(&work.lock);
    work.over = true;
    pthread_cond_broadcast(&work.more);
    pthread_mutex_unlock(&work.lock);
    for (size_t i = 0; i < nthreads; i++)
        pthread_join(thread[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"seconds\": %.4f, \"cpu\": %.3f, \"peak_kib\": %ld, \"sum\": %" PRIu64 "}\n",
           (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9,
           seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime), usage.ru_maxrss, work.sum);
    return 0;
}
