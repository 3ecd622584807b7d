// The table of what was changed in a document, as results tell it.
#pragma once

#include "sim/base/json_change.h"
#include "sim/base/json_fields.h"

namespace rehearse {

const Fields<JsonChange>& ChangeFields();
// Of a text that holds JSON, or that is shown as it is where it is none; "": the key is left out.
FieldShape AnyJsonText();

}  // namespace rehearse
