/*
 * The thread that carries all requests of a net: started with the first request, it sends as many
 * at once as the limit allows, and wakes the callers.
 *
 * The limit doubles while that makes the transfers faster, is halved when a server asks for less,
 * and then grows by one.
 */
#include "store/net/loop.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/threads.h"

static const uint64_t SECOND = 1000000000;
static const uint64_t FIRST_PAUSE = 100000000; /* maximum before the second try; doubles */
static const uint64_t LONGEST_PAUSE = 20000000000;
static const uint64_t WINDOW = 200000000;

/* ---- how many at once ---- */

static void slow_down(cm_net *net)
{
    uint64_t now = cm_now_ns();
    if (net->settings.concurrency > 0 || now - net->slowed_ns < SECOND)
        return;
    net->slowed_ns = now;
    net->growing = false;
    net->best_limit = net->limit;
    net->limit = net->limit > 2 ? net->limit / 2 : 1;
}

/* Decides from the transfers since WINDOW whether more at once are faster. */
static void look_at_speed(cm_net *net, uint64_t nbytes)
{
    uint64_t now = cm_now_ns();
    if (net->window_ns == 0)
        net->window_ns = now;
    net->window_nbytes += nbytes + 4096; /* count a request as work, however small */
    net->window_n++;
    if (net->settings.concurrency > 0 || net->window_n < 2 * (uint64_t)net->limit ||
        now - net->window_ns < WINDOW)
        return;
    double rate = (double)net->window_nbytes / (double)(now - net->window_ns);
    bool busy = net->nwaiting > 0; /* more could have been sent */
    net->window_ns = now;
    net->window_nbytes = net->window_n = 0;
    if (!busy)
        return;
    if (!net->growing) {
        if (net->limit < net->best_limit && now - net->slowed_ns > SECOND)
            net->limit++;
        return;
    }
    if (rate > net->best_rate * 1.05 && net->limit < CM_NET_MAX_CONCURRENCY) {
        net->best_rate = rate;
        net->best_limit = net->limit;
        net->limit *= 2;
    } else {
        net->growing = false;
        if (rate < net->best_rate * 0.95 && net->best_limit > 0)
            net->limit = net->best_limit;
        net->best_limit = net->limit;
    }
}

/* ---- requests on the thread ---- */

static void count_try(cm_net *net, const cm_transfer_state *t)
{
    cm_net_tally *c = net->tally;
    _Atomic uint64_t *n[] = {&c->get, &c->head, &c->put, &c->post, &c->remove};
    ++*(t->request->listing ? &c->list : n[t->request->method]);
    c->nretries += t->ntries > 1;
}

static void count_end(cm_net *net, const cm_transfer_state *t)
{
    curl_off_t first = 0, sent = 0;
    long connections = 0;
    cm_net_tally *c = net->tally;
    curl_easy_getinfo(t->easy, CURLINFO_STARTTRANSFER_TIME_T, &first);
    curl_easy_getinfo(t->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    curl_easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &connections);
    c->received_nbytes += t->ngot;
    c->sent_nbytes += (uint64_t)sent;
    c->nconnections += (uint64_t)connections;
    c->nsummed += t->summed;
    c->nchecked += t->checked;
    if (first > 0 && t->request->method == CM_HTTP_GET) {
        c->first_byte_ns += (uint64_t)first * 1000;
        c->ntimed++;
    }
}

static void give_back(cm_net *net, cm_transfer_state *t)
{
    if (t->easy == NULL)
        return;
    if (net->nidle < net->idle_room)
        net->idle[net->nidle++] = t->easy;
    else
        curl_easy_cleanup(t->easy);
    t->easy = NULL;
}

/* Ends T, whose request->rc is set.  Lock held. */
static void end(cm_net *net, cm_transfer_state *t, const cm_error *why)
{
    cm_http_group *g = t->group;
    int rc = t->request->rc;
    give_back(net, t);
    cm_transfer_release(t);
    if (rc != CM_OK && rc != CM_ENOTFOUND && g->rc == CM_OK) {
        g->rc = rc;
        if (g->err != NULL && why != NULL)
            *g->err = *why;
        if (g->err != NULL)
            g->err->status = (cm_status)rc;
    }
    if (--g->npending == 0)
        SLIST_INSERT_HEAD(&net->ended, g, next);
}

static bool is_canceled(const cm_net *net)
{
    return atomic_load(&net->abandoned) || (net->settings.canceled != NULL &&
                                            net->settings.canceled(net->settings.canceled_context));
}

static void cancel(cm_net *net, cm_transfer_state *t)
{
    cm_error why = {0};
    t->request->rc = cm_fail(&why, CM_ECANCELED, "stopped by request");
    pthread_mutex_lock(&net->lock);
    end(net, t, &why);
    pthread_mutex_unlock(&net->lock);
}

static bool is_unwanted(const cm_transfer_state *t)
{
    return t->request->unwanted != NULL && atomic_load(t->request->unwanted);
}

static uint64_t random_below(cm_net *net, uint64_t n)
{
    net->random ^= net->random << 13;
    net->random ^= net->random >> 7;
    net->random ^= net->random << 17;
    return n > 0 ? net->random % n : 0;
}

bool cm_net_tries_again(cm_net *net, cm_transfer_state *t)
{
    const cm_http *r = t->request;
    uint64_t now = cm_now_ns(), most = FIRST_PAUSE << (t->ntries < 10 ? t->ntries : 10);
    if (t->failing_ns == 0)
        t->failing_ns = t->progress_ns;
    const uint64_t end = t->failing_ns + net->timeout_ns;
    if (r->patience > 0 && t->ntries >= r->patience)
        return false;
    if (t->doubtful && t->ntries >= CM_NET_PATIENCE_FIRST)
        return false;
    /* While no server has ever answered, a wrong address is more likely than a failure. */
    if (!net->answered && r->status == 0 && t->ntries >= CM_NET_PATIENCE_FIRST)
        return false;
    if (now + t->retry_after_ns >= end || is_canceled(net) || is_unwanted(t))
        return false;
    uint64_t pause = random_below(net, most < LONGEST_PAUSE ? most : LONGEST_PAUSE);
    if (pause < t->retry_after_ns)
        pause = t->retry_after_ns + random_below(net, FIRST_PAUSE);
    t->due_ns = now + pause < end ? now + pause : end;
    return true;
}

static void delay(cm_net *net, cm_transfer_state *t)
{
    give_back(net, t);
    TAILQ_INSERT_TAIL(&net->delayed, t, next);
}

static void tell_failure(const cm_transfer_state *t, cm_error *why)
{
    why->passes = !t->doubtful;
    if (t->ntries > 1)
        cm_error_suffix(why, "; tried %u times in %.0f s", t->ntries,
                        (double)(cm_now_ns() - t->failing_ns) * 1e-9);
}

static void finish(cm_net *net, cm_transfer_state *t, CURLcode result)
{
    cm_error why = {0};
    if (t->broken != CM_OK)
        why = t->broken_why;
    cm_verdict_http verdict = cm_http_judge(t, result, &why);
    net->answered = net->answered || t->request->status > 0;
    pthread_mutex_lock(&net->lock);
    count_end(net, t);
    if (verdict == CM_HTTP_SLOWER) {
        slow_down(net);
        net->tally->nthrottled++;
    } else if (verdict == CM_HTTP_DONE) {
        look_at_speed(net, t->ngot);
    }
    bool onward = verdict == CM_HTTP_ELSEWHERE;
    bool again = onward || (verdict != CM_HTTP_DONE && cm_net_tries_again(net, t));
    if (!onward)
        cm_transfer_come_back(t);
    if (again && verdict == CM_HTTP_SLOWER)
        net->tally->throttled_ns += t->due_ns - cm_now_ns();
    if (!again && verdict != CM_HTTP_DONE)
        tell_failure(t, &why);
    if (again)
        delay(net, t);
    else
        end(net, t, &why);
    pthread_mutex_unlock(&net->lock);
}

static CURL *take_easy(cm_net *net)
{
    return net->nidle > 0 ? net->idle[--net->nidle] : curl_easy_init();
}

/* Starts T, which is in no list. */
static void start(cm_net *net, cm_transfer_state *t)
{
    cm_error why = {0};
    int rc = CM_OK;
    if (t->easy == NULL && (t->easy = take_easy(net)) == NULL)
        rc = cm_fail(&why, CM_ENOMEM, "no memory for a request");
    if (rc == CM_OK)
        rc = cm_transfer_prepare(t, &why);
    t->ntries++;
    if (rc == CM_OK && curl_multi_add_handle(net->multi, t->easy) != CURLM_OK)
        rc = cm_fail(&why, CM_EINTERNAL, "%s: a request cannot be begun", t->request->shown);
    pthread_mutex_lock(&net->lock);
    if (rc == CM_OK) {
        count_try(net, t);
        TAILQ_INSERT_TAIL(&net->active, t, next);
        net->nactive++;
    } else {
        t->request->rc = rc;
        end(net, t, &why);
    }
    pthread_mutex_unlock(&net->lock);
}

/* ---- the thread ---- */

/* The next request that may start now; NULL: none. */
static cm_transfer_state *take_due(cm_net *net, uint64_t now)
{
    cm_transfer_state *t = NULL;
    pthread_mutex_lock(&net->lock);
    if (net->nactive < net->limit) {
        TAILQ_FOREACH(t, &net->delayed, next) if (t->due_ns <= now) break;
        if (t != NULL) {
            TAILQ_REMOVE(&net->delayed, t, next);
        } else if ((t = TAILQ_FIRST(&net->waiting)) != NULL) {
            TAILQ_REMOVE(&net->waiting, t, next);
            net->nwaiting--;
        }
    }
    pthread_mutex_unlock(&net->lock);
    return t;
}

/* The next request to start; drops those of a call that has failed, and those nobody waits for. */
static cm_transfer_state *next_due(cm_net *net, uint64_t now)
{
    cm_transfer_state *t;
    while ((t = take_due(net, now)) != NULL &&
           (t->group->rc != CM_OK || is_unwanted(t) || atomic_load(&net->abandoned)))
        cancel(net, t);
    return t;
}

static void take_out(cm_net *net, cm_transfer_state *t)
{
    curl_multi_remove_handle(net->multi, t->easy);
    TAILQ_REMOVE(&net->active, t, next);
    net->nactive--;
}

/* Ends requests without progress once the call is to end; all of them where nobody waits. */
static void give_up(cm_net *net)
{
    const uint64_t now = cm_now_ns(); /* no request that was started is later */
    const uint64_t patience = atomic_load(&net->abandoned) ? 0 : 3 * SECOND;
    cm_transfer_state *after;
    for (cm_transfer_state *t = TAILQ_FIRST(&net->delayed); t != NULL; t = after) {
        after = TAILQ_NEXT(t, next);
        TAILQ_REMOVE(&net->delayed, t, next);
        cancel(net, t);
    }
    for (cm_transfer_state *t = TAILQ_FIRST(&net->active); t != NULL; t = after) {
        after = TAILQ_NEXT(t, next);
        if (now - t->progress_ns < patience)
            continue;
        take_out(net, t);
        cancel(net, t);
    }
}

/* Milliseconds until the next retry or timeout. */
static int pause_of(const cm_net *net, uint64_t now)
{
    const cm_transfer_state *t;
    uint64_t until =
        now + (net->nactive > 0 || !TAILQ_EMPTY(&net->delayed) ? SECOND / 4 : 60 * SECOND);
    TAILQ_FOREACH(t, &net->delayed, next) if (t->due_ns < until) until = t->due_ns;
    return until > now ? (int)((until - now) / 1000000) + 1 : 0;
}

static void take_finished(cm_net *net)
{
    CURLMsg *m;
    int left;
    while ((m = curl_multi_info_read(net->multi, &left)) != NULL) {
        cm_transfer_state *t;
        CURLcode result = m->data.result;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        take_out(net, t);
        finish(net, t, result);
    }
}

/*
 * Wakes waiting callers and calls DONE of others, without the lock, which they would contend for.
 */
static void tell(cm_net *net)
{
    cm_http_group *g;
    while ((g = SLIST_FIRST(&net->ended)) != NULL) {
        SLIST_REMOVE_HEAD(&net->ended, next);
        cm_http_done *call = g->call;
        void *of = g->context;
        if (call == NULL) {
            sem_post(&g->done);
            continue;
        }
        free(g);
        call(of);
    }
}

/* Whether there is nothing to start; then the next request wakes the thread. */
static bool go_to_sleep(cm_net *net)
{
    pthread_mutex_lock(&net->lock);
    bool room = net->nactive < net->limit;
    bool sleeps = !room || TAILQ_EMPTY(&net->waiting);
    net->asleep = sleeps && room;
    pthread_mutex_unlock(&net->lock);
    return sleeps;
}

static void *loop_main(void *context)
{
    cm_net *net = context;
    cm_transfer_state *t;
    int alive;
    for (;;) {
        uint64_t now = cm_now_ns();
        pthread_mutex_lock(&net->lock);
        bool stopping = net->stopping;
        pthread_mutex_unlock(&net->lock);
        if (stopping)
            return NULL;
        while ((t = next_due(net, now)) != NULL)
            start(net, t);
        curl_multi_perform(net->multi, &alive);
        take_finished(net);
        if (is_canceled(net))
            give_up(net);
        tell(net);
        if (go_to_sleep(net))
            curl_multi_poll(net->multi, NULL, 0, pause_of(net, cm_now_ns()), NULL);
    }
}

/* ---- asking ---- */

/* Lock held. */
static int start_thread(cm_net *net, cm_error *err)
{
    net->multi = curl_multi_init();
    net->idle_room = 512;
    free(net->idle);
    net->idle = cm_calloc(net->idle_room, sizeof(net->idle[0]), err);
    if (net->multi == NULL || net->idle == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for requests");
    /* With fewer, transfers under way would open new connections for ever. */
    curl_multi_setopt(net->multi, CURLMOPT_MAXCONNECTS, 4L * CM_NET_MAX_CONCURRENCY);
    int errnum = cm_thread_begin(&net->thread, loop_main, net);
    if (errnum != 0)
        return cm_fail_errno(err, errnum, "no thread for requests");
    net->process = getpid();
    return CM_OK;
}

/* Forgets the parent's thread in a forked process. */
static void reset(cm_net *net)
{
    pthread_mutex_init(&net->lock, NULL);
    TAILQ_INIT(&net->waiting);
    TAILQ_INIT(&net->active);
    TAILQ_INIT(&net->delayed);
    SLIST_INIT(&net->ended);
    net->nactive = net->nwaiting = net->nidle = 0;
    net->asleep = false;
    net->idle = NULL;
    net->multi = NULL;
}

/* Makes sure that the thread belongs to this process; any thread may call it first. */
static void settle(cm_net *net)
{
    for (;;) {
        int process = atomic_load(&net->process);
        if (process == 0 || process == getpid())
            return;
        if (process != -1 && atomic_compare_exchange_strong(&net->process, &process, -1)) {
            reset(net);
            net->forget_parent(net);
            atomic_store(&net->process, 0);
        }
    }
}

/* Queues all N requests.  Any thread. */
static int hand_over(cm_net *net, cm_http *request, size_t n, cm_http_group *group,
                     cm_transfer_state *state, cm_error *err)
{
    settle(net);
    pthread_mutex_lock(&net->lock);
    int rc = net->process == 0 ? start_thread(net, err) : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        state[i] = (cm_transfer_state){.net = net, .request = &request[i], .group = group};
        request[i].rc = CM_ECANCELED;
        TAILQ_INSERT_TAIL(&net->waiting, &state[i], next);
        net->nwaiting++;
    }
    bool wake = rc == CM_OK && net->asleep;
    net->asleep = net->asleep && !wake;
    pthread_mutex_unlock(&net->lock);
    /* Without the lock, which the thread would have to wait for. */
    if (wake)
        curl_multi_wakeup(net->multi);
    return rc;
}

int cm_http_begin(cm_net *net, cm_http *request, cm_error *why, cm_http_done *done, void *context,
                  cm_error *err)
{
    struct call {
        cm_http_group group; /* first: cm_http_call is freed through it */
        cm_transfer_state state;
    } *c = cm_calloc(1, sizeof(*c), err);
    if (c == NULL)
        return CM_ENOMEM;
    c->group = (cm_http_group){.npending = 1, .err = why, .call = done, .context = context};
    int rc = hand_over(net, request, 1, &c->group, &c->state, err);
    if (rc != CM_OK)
        free(c);
    return rc;
}

struct cm_http_call {
    cm_http_group group;
    size_t n;
    cm_error why;
    cm_transfer_state state[];
};

static void free_call(cm_http_call *c)
{
    sem_destroy(&c->group.done);
    free(c);
}

int cm_http_start(cm_net *net, cm_http *request, size_t n, cm_http_call **out, cm_error *err)
{
    cm_http_call *c = cm_calloc(1, sizeof(*c) + n * sizeof(c->state[0]), err);
    if (c == NULL)
        return CM_ENOMEM;
    c->n = n;
    c->group = (cm_http_group){.npending = n, .err = &c->why};
    sem_init(&c->group.done, 0, 0);
    int rc = n > 0 ? hand_over(net, request, n, &c->group, c->state, err) : CM_OK;
    if (rc == CM_OK)
        *out = c;
    else
        free_call(c);
    return rc;
}

bool cm_http_is_done(cm_http_call *c)
{
    int posted = 0;
    sem_getvalue(&c->group.done, &posted);
    return c->n == 0 || posted > 0;
}

int cm_http_wait(cm_http_call *c, cm_error *err)
{
    while (c->n > 0 && sem_wait(&c->group.done) != 0)
        continue; /* interrupted */
    int rc = c->group.rc;
    if (rc != CM_OK && err != NULL)
        *err = c->why;
    free_call(c);
    return rc;
}

int cm_http_run(cm_net *net, cm_http *request, size_t n, cm_error *err)
{
    cm_http_call *call;
    int rc = cm_http_start(net, request, n, &call, err);
    return rc == CM_OK ? cm_http_wait(call, err) : rc;
}

void cm_http_release(cm_http *request, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cm_buf_release(&request[i].text);
}

/* ---- the thread's life ---- */

void cm_loop_init(cm_net *net)
{
    const cm_net_settings *settings = &net->settings;
    double timeout = settings->timeout > 0 ? settings->timeout : 300;
    net->timeout_ns = timeout < 1e9 ? (uint64_t)(timeout * 1e9) : UINT64_MAX / 2;
    net->limit = settings->concurrency > 0 ? settings->concurrency : CM_NET_FIRST_CONCURRENCY;
    net->growing = true;
    net->random = (cm_now_ns() ^ (uint64_t)getpid() << 32) | 1;
    reset(net);
}

void cm_loop_wake(cm_net *net)
{
    if (net->process != getpid())
        return;
    pthread_mutex_lock(&net->lock);
    curl_multi_wakeup(net->multi);
    pthread_mutex_unlock(&net->lock);
}

void cm_loop_stop(cm_net *net)
{
    if (net->process == getpid()) {
        pthread_mutex_lock(&net->lock);
        net->stopping = true;
        curl_multi_wakeup(net->multi);
        pthread_mutex_unlock(&net->lock);
        pthread_join(net->thread, NULL);
        for (size_t i = 0; i < net->nidle; i++)
            curl_easy_cleanup(net->idle[i]);
        curl_multi_cleanup(net->multi);
    }
    free(net->idle);
    pthread_mutex_destroy(&net->lock);
}
