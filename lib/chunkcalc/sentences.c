/* The sentences of the report. */
#include "base/sentences.h"

#include "chunkcalc/chunkcalc.h"

CM_DEFINE_SENTENCE(cm_calc_warn, cm_calc, warning, nwarnings)
CM_DEFINE_SENTENCE(cm_calc_note, cm_calc, note, nnotes)
