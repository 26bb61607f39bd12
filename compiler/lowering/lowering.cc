#include "compiler/lowering/lowering.h"

#include "compiler/codegen/region_plan.h"
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/inference_support.h"
#include "compiler/dialect/state_attributes.h"
