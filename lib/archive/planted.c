#include "archive/planted.h"

unsigned cm_join_planted = 0;
