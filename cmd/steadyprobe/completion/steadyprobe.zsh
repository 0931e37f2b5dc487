#compdef steadyprobe
# Completion of steadyprobe in zsh. Written by: steadyprobe completion zsh

_steadyprobe() {
    local line word about
    local -a plain open
    while IFS=$'\t' read -r word about; do
        if [[ $word == :files ]]; then
            # about is what stands in front of the name, such as --config.file=
            [[ -n $about ]] && compset -P "$about"
            _files
            return
        fi
        line=${word//:/\\:}${about:+:$about}
        if [[ $word == *= ]]; then
            open+=("$line")
        else
            plain+=("$line")
        fi
    done < <("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    _describe -t values 'steadyprobe' plain -- open -S ''
}

# Read as a file of fpath it is called, sourced it registers itself.
if [[ $funcstack[1] == _steadyprobe ]]; then
    _steadyprobe "$@"
else
    compdef _steadyprobe steadyprobe
fi
