#include "base/marks.h"

#include <string.h>

/* Whether HEAD begins with TEXT, white space of HEAD aside: JSON may be indented. */
static bool begins_with(const uint8_t *head, size_t nbytes, const char *text)
{
    size_t i = 0;
    for (; *text != '\0'; text++) {
        while (i < nbytes && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r'))
            i++;
        if (i == nbytes || head[i++] != (uint8_t)*text)
            return false;
    }
    return true;
}

static bool is_trace(const uint8_t *head, size_t nbytes)
{
    return begins_with(head, nbytes, "{" CM_MARK_TRACE "\"traceEvents\":[");
}

static bool is_certificate(const uint8_t *head, size_t nbytes)
{
    return begins_with(head, nbytes, "{\"schema\":\"" CM_MARK_CERTIFICATE "\",");
}

static bool is_report(const uint8_t *head, size_t nbytes)
{
    return begins_with(head, nbytes, "{\"schema\":\"readbench/");
}

static bool is_references(const uint8_t *head, size_t nbytes)
{
    return begins_with(head, nbytes, "{" CM_MARK_REFERENCES);
}

static bool is_survey(const uint8_t *head, size_t nbytes)
{
    const size_t n = sizeof CM_MARK_SURVEY - 1;
    return nbytes >= n && memcmp(head, CM_MARK_SURVEY, n) == 0;
}

static bool is_page(const uint8_t *head, size_t nbytes)
{
    const size_t n = sizeof CM_MARK_PAGE - 1;
    return nbytes >= n && memcmp(head, CM_MARK_PAGE, n) == 0;
}

static bool is_plot(const uint8_t *head, size_t nbytes)
{
    static const char svg[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" CM_MARK_SVG "\n<svg ";
    return nbytes >= sizeof svg - 1 && memcmp(head, svg, sizeof svg - 1) == 0;
}

const cm_document_kind CM_KIND_TRACE = {"trace", is_trace};
const cm_document_kind CM_KIND_CERTIFICATE = {"certificate", is_certificate};
const cm_document_kind CM_KIND_REFERENCES = {"document of references", is_references};
const cm_document_kind CM_KIND_SURVEY = {"survey cache", is_survey};
const cm_document_kind CM_KIND_REPORT = {"report", is_report};
const cm_document_kind CM_KIND_PAGE = {"passport", is_page};
const cm_document_kind CM_KIND_PLOT = {"plot", is_plot};
