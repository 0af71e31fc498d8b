"""Looking things up in dicts that belong to others."""

cdef extern from *:
    """
    /* What a dict holds under a key, or `otherwise`: a reference of one's own, since another thread may put something
       else there at any time. */
    static inline PyObject *amqpcodec_look_up(PyObject *space, PyObject *key, PyObject *otherwise) {
        PyObject *found;
    #if PY_VERSION_HEX >= 0x030D0000
        if (PyDict_GetItemRef(space, key, &found) < 0) return NULL;
        return found != NULL ? found : Py_NewRef(otherwise);
    #else
        found = PyDict_GetItemWithError(space, key);
        if (found == NULL && PyErr_Occurred()) return NULL;
        return Py_NewRef(found != NULL ? found : otherwise);
    #endif
    }
    """
    object look_up "amqpcodec_look_up"(object space, object key, object otherwise)
