# Completion of steadyprobe in bash. Written by: steadyprobe completion bash

_steadyprobe() {
    local IFS=$'\n' word about start current i
    COMPREPLY=()

    # bash takes words apart at = and :, and replaces only the last part.
    current=${COMP_WORDS[COMP_CWORD]}
    [[ $current && ! ${current//[=:]/} ]] && current=
    start=
    if [[ ${COMP_WORDBREAKS} == *=* ]]; then
        for ((i = COMP_CWORD; i > 0; i--)); do
            word=${COMP_WORDS[i]}
            if [[ $word && ! ${word//[=:]/} ]]; then
                start=${COMP_WORDS[i - 1]}$word$start
                ((i--))
            elif ((i < COMP_CWORD)); then
                break
            fi
        done
    fi

    while IFS=$'\t' read -r word about; do
        if [[ $word == :files ]]; then
            # What -o default does, with quotes and all.
            return
        fi
        COMPREPLY+=("${word#"$start"}")
    done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)

    # A bash older than 4 has no compopt, and then offers files and writes a
    # space, which is no harm.
    compopt +o default +o bashdefault 2>/dev/null
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
}

complete -o bashdefault -o default -F _steadyprobe steadyprobe
